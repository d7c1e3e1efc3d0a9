/**
 * Records pages side by side as a WebM, with Chromium alone: it sends the frames of each page, and a further page draws
 * them on one canvas and encodes that. What is recorded, for how long, and where to is in the environment; see Record
 * in Magefile.go.
 */
import { open } from 'node:fs/promises';

import { chromium } from '@playwright/test';

const { CHROMIUM_PATH, RECORD_PAGES, RECORD_SECONDS, RECORD_FILE } = process.env;
const HEIGHT = 1080;
const WIDTH = 1920;

try {
  await record(RECORD_PAGES.split(','), Number(RECORD_SECONDS), RECORD_FILE);
} catch (error) {
  console.error(`record: ${error.message}`);
  process.exitCode = 1;
}

async function record(addresses, seconds, name) {
  await Promise.all(addresses.map(answers));
  const file = await open(name, 'wx').catch((error) => {
    throw new Error(
      `${name}: ${error.code === 'EEXIST' ? 'exists; name another file with RECORD_FILE' : error.message}`
    );
  });
  const browser = await chromium.launch({ executablePath: CHROMIUM_PATH, args: ['--no-sandbox', '--disable-gpu'] });
  try {
    const encoder = await encode(await browser.newPage(), file);
    const width = Math.floor(WIDTH / addresses.length);
    const shown = await Promise.all(
      addresses.map((address, i) => show(browser, address, width, encoder.draw(i * width)))
    );
    await Promise.all(shown.map(({ drawn }) => drawn));
    await encoder.start();
    await pass(seconds);
    await Promise.all(shown.map(({ session }) => session.send('Page.stopScreencast')));
    await encoder.stop();
  } finally {
    await browser.close();
    await file.close();
  }
  console.log(`${name}: ${seconds} s of ${addresses.join(' and ')}`);
}

async function answers(address) {
  const answer = await fetch(address).catch(() => undefined);
  if (!answer?.ok) {
    const what = answer ? `answers ${answer.status}` : 'does not answer';
    throw new Error(`${address} ${what}: start the booth (go tool mage demo), or name the pages with RECORD_PAGES`);
  }
}

/** Opens a page and draws each of its frames. The promise drawn resolves with the first of them. */
async function show(browser, address, width, draw) {
  const page = await browser.newPage({ viewport: { width, height: HEIGHT }, colorScheme: 'dark' });
  const session = await page.context().newCDPSession(page);
  const drawn = new Promise((resolve) => {
    session.on('Page.screencastFrame', async ({ data, sessionId }) => {
      try {
        await draw(data);
        resolve();
        await session.send('Page.screencastFrameAck', { sessionId }); // only then comes the next
      } catch {
        // the browser is closing
      }
    });
  });
  await page.goto(address, { waitUntil: 'load' });
  await session.send('Page.startScreencast', { format: 'jpeg', quality: 85, maxWidth: width, maxHeight: HEIGHT });
  return { session, drawn };
}

/** Makes a page the encoder, which appends to a file every second. */
async function encode(page, file) {
  await page.exposeFunction('keep', (base64) => file.appendFile(Buffer.from(base64, 'base64')));
  await page.evaluate(
    ([width, height]) => {
      const canvas = document.body.appendChild(Object.assign(document.createElement('canvas'), { width, height }));
      const context = canvas.getContext('2d');
      window.draw = async (x, jpeg) => {
        const image = new Image();
        image.src = `data:image/jpeg;base64,${jpeg}`;
        await image.decode();
        context.drawImage(image, x, 0);
      };
      const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: 'video/webm', videoBitsPerSecond: 8e6 });
      let kept = Promise.resolve();
      let begun;
      recorder.ondataavailable = ({ data }) => {
        if (data.size > 0) {
          begun();
        }
        kept = kept.then(async () => {
          const bytes = new Uint8Array(await data.arrayBuffer());
          let text = '';
          for (let i = 0; i < bytes.length; i += 32768) {
            text += String.fromCharCode(...bytes.subarray(i, i + 32768));
          }
          await window.keep(btoa(text));
        });
      };
      // A busy machine takes seconds until the first frame is encoded. What stands still is drawn again until then.
      window.startRecorder = async () => {
        const drawing = setInterval(() => context.drawImage(canvas, 0, 0), 100);
        await new Promise((resolve) => {
          begun = resolve;
          recorder.start(1000);
        });
        clearInterval(drawing);
      };
      window.stopRecorder = async () => {
        await new Promise((resolve) => {
          recorder.onstop = resolve;
          recorder.stop();
        });
        await kept;
      };
    },
    [WIDTH, HEIGHT]
  );
  return {
    draw: (x) => (jpeg) => page.evaluate(([x, jpeg]) => window.draw(x, jpeg), [x, jpeg]),
    start: () => page.evaluate(() => window.startRecorder()),
    stop: () => page.evaluate(() => window.stopRecorder()),
  };
}

/** Waits, and says every ten seconds how far it is. */
async function pass(seconds) {
  for (let done = 0; done < seconds;) {
    const next = Math.min(10, seconds - done);
    await new Promise((resolve) => setTimeout(resolve, 1000 * next));
    done += next;
    console.log(`${done} of ${seconds} s`);
  }
}
