/** The load generator's own page, as a visitor finds it. */
import fs from 'node:fs/promises';

import { call, env, until } from '../booth.mjs';

/** Where the pages are that need a token: to operate, and to see anything. */
export const doors = {
  public: process.env.PUBLIC_URL,
  closed: process.env.CLOSED_URL,
  token: process.env.SESSION_TOKEN,
};

/** The load generator that plays back eight hours of snapshots. */
export const replay = process.env.REPLAY_URL;

/** Patterns of what a browser's console says of calls that are refused for want of the token. */
export const refused = [/401 \(Unauthorized\)/, /WebSocket .* failed/];

/** Patterns of what it says while the load generator is gone. */
export const gone = [
  /ERR_CONNECTION_REFUSED/,
  /ERR_CONNECTION_RESET/,
  /ERR_EMPTY_RESPONSE/,
  /ERR_INCOMPLETE/,
  /WebSocket/,
];

const source = await fs.readFile(new URL('../../../src/pages/registry.ts', import.meta.url), 'utf8');

/** All pages that are registered: their addresses, titles, and whether the navigation leads to them. */
export const registered = [...source.matchAll(/path: '([^']*)',\s*title: '([^']*)'([^{}]*)/g)].map(
  ([, path, title, rest]) => ({ path, title, nested: rest.includes('nested: true') })
);

/** The registered pages with an address in the place of a pattern. */
export async function addresses() {
  const { conversations } = await until('a conversation', async () => {
    const list = await call('GET', '/api/v1/conversations?limit=1');
    return list.conversations.length > 0 && list;
  });
  return registered.map((page) => ({ ...page, path: `/${page.path.replace(':id', conversations[0].id)}` }));
}

/** A page of the load generator, open in a browser's page. */
export class Page {
  constructor(page) {
    this.page = page;
  }

  /** Opens an address and waits for a word of what the workload does. */
  static async open(page, path = '/', root = env.loadgen) {
    const opened = new Page(page);
    await page.goto(root + path);
    await opened.status.waitFor();
    return opened;
  }

  /** What the workload does, in a word or two. */
  get status() {
    return this.page.locator('header [role="status"]');
  }

  button(name) {
    return this.page.locator('header').getByRole('button', { name, exact: true });
  }

  /** The slider of the page that has one. */
  get slider() {
    return this.page.getByRole('slider', { name: 'Concurrency' });
  }

  /** Waits until the header calls the state by one of these words. */
  says(words, within) {
    return until(
      `the header says ${words}`,
      async () => {
        const text = await this.status.innerText();
        if (!words.test(text)) {
          throw new Error(text);
        }
        return text;
      },
      { within }
    );
  }

  /** Waits until the page itself is there, below the header. */
  async settled() {
    await this.page.locator('main h2').first().waitFor();
    await this.page.waitForFunction(() => document.fonts.ready.then(() => true));
    await until('every icon is there, and every colour has changed', () =>
      this.page.evaluate(() => {
        const moving = document.getAnimations().filter((a) => a instanceof CSSTransition && a.playState === 'running');
        return moving.length === 0 && [...document.querySelectorAll('svg')].every((svg) => svg.childElementCount > 0);
      })
    );
  }

  /** How far the page reaches beyond the window, in pixels. */
  overflow() {
    return this.page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  }
}
