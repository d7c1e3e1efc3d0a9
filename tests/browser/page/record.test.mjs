/** A video of pages side by side. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { env } from '../booth.mjs';
import { expect, test } from './page.mjs';

const run = promisify(execFile);

test('pages are recorded side by side', async ({ visit }, testInfo) => {
  const file = testInfo.outputPath('recorded.webm');
  const record = (pages) =>
    run('node', [fileURLToPath(new URL('../../../tools/record/record.mjs', import.meta.url))], {
      env: { ...process.env, RECORD_PAGES: pages, RECORD_SECONDS: '3', RECORD_FILE: file },
    });
  await expect(record('http://127.0.0.1:1/')).rejects.toThrow(/does not answer: start the booth/);
  await record(`${env.loadgen}/stage,${env.loadgen}/guide`);
  await expect(record(`${env.loadgen}/stage`)).rejects.toThrow(/exists; name another file with RECORD_FILE/);

  const page = await visit();
  const shades = await page.evaluate(shadesOf, (await readFile(file)).toString('base64'));
  expect(
    shades.map((n) => n > 20),
    'each half shows text'
  ).toEqual([true, true]);
});

/** Counts the shades of the last frame in its left half and in its right one. */
async function shadesOf(base64) {
  const video = Object.assign(document.createElement('video'), {
    muted: true,
    src: `data:video/webm;base64,${base64}`,
  });
  await new Promise((resolve, reject) => {
    video.onloadeddata = resolve;
    video.onerror = () => reject(new Error(video.error.message));
  });
  video.currentTime = 1e6;
  await new Promise((resolve) => (video.onseeked = resolve));
  const { videoWidth: width, videoHeight: height } = video;
  const canvas = Object.assign(document.createElement('canvas'), { width, height });
  const context = canvas.getContext('2d');
  context.drawImage(video, 0, 0);
  return [0, width / 2].map((x) => {
    const { data } = context.getImageData(x, 0, width / 2, height);
    return new Set(data.filter((_, i) => i % 4 === 0)).size;
  });
}
