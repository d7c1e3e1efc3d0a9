/** Journeys: tests with visitors in a browser, whose console must contain no error. */
import fs from 'node:fs/promises';
import path from 'node:path';

import { expect, test as base } from '@playwright/test';

import { addUser, atRest, env } from './booth.mjs';

export { expect };

/** Takes a picture of the window, or of the whole scrolled page, into the results. */
export async function picture(page, name, { whole = false } = {}) {
  await fs.mkdir(env.results, { recursive: true });
  await page.screenshot({ path: path.join(env.results, `${name}.png`), fullPage: whole });
}

/**
 * Console messages of Grafana itself, which we do not cause. Any other message of the kind error fails the journey, as
 * does every exception of a page.
 */
const grafanasOwn = [
  /404 .*\/api\/dashboards\/uid\/[^/]+\/public-dashboards\)$/, // an editor's Grafana requests whether there is one
  /502 .*\/api\/gnet\/plugins/, // the catalog at grafana.com, unreachable in tests
  /^Failed to fetch plugins from catalog/,
];

/**
 * Grafana contains a library that, once in a thousand pages, reports to its maker on the internet, unless this flag
 * marks the report as done.
 */
function silenceSurveys() {
  window.__fpjs_d_m = true;
}

export const test = base.extend({
  /** One context for each login, so that Grafana's scripts come from the cache the second time. */
  contextOf: [
    async ({ browser }, use) => {
      const contexts = {};
      await use((login = '') => (contexts[login] ??= enter(browser, login)));
    },
    { scope: 'worker' },
  ],

  /**
   * Opens a page for a visitor, with the booth at rest: visit({ login, width, height, expected, browser }) returns the
   * page. expected are patterns of the console messages that the journey itself causes, such as a refused call. A
   * visitor with an own browser, described as in Playwright, has nothing cached and nothing stored.
   */
  visit: async ({ browser, contextOf }, use) => {
    const complaints = [];
    const leave = [];
    await atRest();
    await use(async ({ login, width = 1920, height = 1080, expected = [], browser: own } = {}) => {
      const context = own ? await browser.newContext(own) : await contextOf(login);
      const page = await context.newPage();
      leave.push(() => (own ? context.close() : page.close()));
      await page.setViewportSize({ width, height });
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
      return page;
    });
    await Promise.all(leave.map((go) => go()));
    expect(complaints, 'the console stays free of errors').toEqual([]);
  },
});

async function enter(browser, login) {
  const context = await browser.newContext();
  if (login) {
    await addUser(login);
    const answer = await context.request.post(`${env.grafana}/login`, {
      data: { user: login, password: env.password },
    });
    expect(answer.status(), `login as ${login}`).toBe(200);
  }
  await context.addInitScript(silenceSurveys);
  return context;
}
