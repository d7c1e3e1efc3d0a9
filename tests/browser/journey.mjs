/** Journeys: tests with visitors in a browser, who must not see an error in its console. */
import fs from 'node:fs/promises';
import path from 'node:path';

import { expect, test as base } from '@playwright/test';

import { addUser, atRest, env } from './booth.mjs';

export { expect };

/** Takes a picture of the window, or of all that scrolling would show, into the results. */
export async function picture(page, name, { whole = false } = {}) {
  await fs.mkdir(env.results, { recursive: true });
  await page.screenshot({ path: path.join(env.results, `${name}.png`), fullPage: whole });
}

/**
 * What Grafana itself writes to the console, and we do not cause. Everything else
 * of the kind error fails the journey, as does every exception of a page.
 */
const grafanasOwn = [
  /404 .*\/api\/dashboards\/uid\/[^/]+\/public-dashboards\)$/, // an editor's Grafana asks whether there is one
  /502 .*\/api\/gnet\/plugins/, // the catalog at grafana.com, which tests do not reach
  /^Failed to fetch plugins from catalog/,
];

/**
 * Grafana contains a library that, once in a thousand pages, reports to its maker
 * on the internet, unless this flag marks the report as done.
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
   * Lets visitors in, with the booth at rest: visit({ login, width, height, expected,
   * browser }) gives a page. Expected are patterns of what the journey itself makes the
   * console say, such as a refused call. Who brings a browser, described as Playwright
   * does, comes with nothing cached and nothing stored.
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
