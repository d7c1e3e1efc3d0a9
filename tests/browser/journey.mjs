/** Journeys: tests with visitors in a browser, who must not see an error in its console. */
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import path from 'node:path';
import { after, test } from 'node:test';

import { chromium } from 'playwright-core';

import { atRest, env } from './booth.mjs';

/** How long anything on a page may take, in milliseconds, unless a journey says otherwise. */
const PATIENCE = 30_000;

/** How long a journey may take, in milliseconds. */
const LIMIT = 300_000;

let browser;
after(() => browser?.close());

async function launch() {
  browser ??= await chromium.launch({
    executablePath: env.chromium,
    args: [
      '--no-sandbox',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--disable-gpu',
      '--disable-extensions',
    ],
  });
  return browser;
}

/**
 * What Grafana itself writes to the console, and we do not cause. Everything else
 * of the kind error fails the journey, as does every exception of a page.
 */
const grafanasOwn = [
  /404 .*\/api\/dashboards\/uid\/[^/]+\/public-dashboards\)$/, // an editor's Grafana asks whether there is one
  /502 .*\/api\/gnet\/plugins/, // the catalogue at grafana.com, which tests do not reach
  /^Failed to fetch plugins from catalog/,
];

/**
 * A test that begins with the booth at rest, and with a way to let visitors in:
 * visit({ login, width, height, expected, browser }) gives a page. Expected are patterns
 * of what the journey itself makes the console say, such as a refused call. Who brings
 * a browser, described as Playwright does, comes with nothing cached and nothing stored.
 */
export function journey(name, run) {
  test(name, { timeout: LIMIT }, async (t) => {
    const visits = [];
    const visit = async (options = {}) => {
      const arrived = await arrive(options);
      visits.push(arrived);
      return arrived.page;
    };
    try {
      await atRest();
      await run({ visit, say: (text) => t.diagnostic(`${name}: ${text}`) });
      for (const { complaints } of visits) {
        assert.deepEqual(complaints, [], 'the console stays free of errors');
      }
    } catch (error) {
      await keep(name, visits);
      throw error;
    } finally {
      await Promise.all(visits.map(({ leave }) => leave()));
    }
  });
}

/**
 * Grafana brings a library along that, once in a thousand pages, reports to its
 * maker on the internet, unless told that it has done so already.
 */
function silenceSurveys() {
  window.__fpjs_d_m = true;
}

async function newContext(options) {
  const context = await (await launch()).newContext({ reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(PATIENCE);
  return context;
}

/** One for each login, so that Grafana's scripts come from the cache the second time. */
const contexts = new Map();

async function contextOf(login) {
  let context = contexts.get(login);
  if (context) {
    return context;
  }
  context = await newContext();
  if (login) {
    const answer = await context.request.post(`${env.grafana}/login`, {
      data: { user: login, password: env.password },
    });
    assert.equal(answer.status(), 200, `login as ${login}`);
  }
  await context.addInitScript(silenceSurveys);
  contexts.set(login, context);
  return context;
}

/** A visitor. Without a login, it is an anonymous one. */
async function arrive({ login, width = 1920, height = 1080, expected = [], browser: own }) {
  const context = own ? await newContext(own) : await contextOf(login);
  const page = await context.newPage();
  await page.setViewportSize({ width, height });
  const complaints = [];
  const complain = (text) => {
    if (![...grafanasOwn, ...expected].some((pattern) => pattern.test(text))) {
      complaints.push(text);
    }
  };
  page.on('pageerror', (error) => complain(String(error.stack ?? error)));
  page.on('console', (message) => {
    if (message.type() === 'error') {
      complain(`${message.text()} (${message.location().url})`);
    }
  });
  return { page, complaints, leave: () => (own ? context.close() : page.close()) };
}

/** Keeps what the visitors of a failed journey see. */
async function keep(name, visits) {
  const file = name.replace(/[^a-z0-9]+/gi, '-').slice(0, 60);
  await fs.mkdir(env.failed, { recursive: true });
  for (const [i, { page, complaints }] of visits.entries()) {
    const to = path.join(env.failed, `${file}-${i}`);
    await page.screenshot({ path: `${to}.png` }).catch(() => {});
    await fs.writeFile(`${to}.txt`, [page.url(), ...complaints].join('\n')).catch(() => {});
  }
}
