/** The pages for a visitor: on the load generator's own address or, unless PLACE is page, inside Grafana. */
import fs from 'node:fs/promises';

import { call, env, eventually } from '../booth.mjs';
import { expect, picture, test as anywhere } from '../journey.mjs';

const APP = 'kvbooth-inference-app';

/** The themes of Grafana, by a page's address. */
const schemes = new WeakMap();

/** The differences between the two places of the pages. */
const hosts = {
  /** On the load generator's address a visitor may use an own browser. */
  loadgen: {
    name: 'page',
    /** The actor in the events of these journeys. */
    by: 'page',
    /** The part of the screen that is ours. */
    ours: 'body',
    header: 'header',
    navigation: 'nav[aria-label="Pages"]',
    /** Whether a small window shows nothing but our page. */
    alone: true,
    openWithin: 60_000,
    visit: (visit, options) => visit(options),
    address: (page, path, root) => root + path,
    calls: '/api/v1',
    /** Returns the snapshots in a message of a WebSocket. */
    snapshots: (payload) => [JSON.parse(payload)],
    gone: [/ERR_CONNECTION_REFUSED/, /ERR_CONNECTION_RESET/, /ERR_EMPTY_RESPONSE/, /ERR_INCOMPLETE/, /WebSocket/],
  },
  /** Inside Grafana a visitor has a login, and Grafana's scripts are cached. */
  grafana: {
    name: 'app',
    by: 'editor',
    ours: 'main:not([inert] *)', // without the parts that the stage view covers
    header: 'main:not([inert] *)',
    navigation: '[data-testid="data-testid navigation mega-menu"]',
    alone: false,
    openWithin: 120_000,
    visit: async (visit, { browser = {}, ...options } = {}) => {
      const page = await visit({ login: 'editor', ...options });
      const { colorScheme = 'dark', reducedMotion = 'reduce' } = browser;
      await page.emulateMedia({ reducedMotion });
      schemes.set(page, colorScheme);
      return page;
    },
    address: (page, path) => {
      const url = new URL(`${env.grafana}/a/${APP}${path === '/' ? '' : path}`);
      if (schemes.get(page) === 'light') {
        url.searchParams.set('theme', 'light');
      }
      return url.href;
    },
    calls: `/api/plugins/${APP}/resources`,
    snapshots: (payload) =>
      payload
        .split('\n')
        .filter((line) => line.includes(`/${APP}/main/snapshot`))
        .map((line) => JSON.parse(line).push?.pub?.data)
        .filter((data) => data?.lanes),
    gone: [/50[234] \(.*\) .*\/resources\//],
  },
};

/** The place of the pages in these journeys. */
export const host = hosts[/^page/.test(process.env.PLACE) ? 'loadgen' : 'grafana'];

export { expect };

/** A journey through the pages, in either place. */
export const test = anywhere.extend({
  visit: ({ visit }, use) => use((options) => host.visit(visit, options)),
});

/**
 * The tags of a journey of the gate. Those with @path also run inside a Grafana below a path, where addresses differ.
 */
export const gate = { tag: '@gate' };

/** Calls the API of another load generator, and returns the answer. */
export async function ask(root, method, address, body) {
  const headers = body && { 'Content-Type': 'application/json' };
  const answer = await fetch(root + address, { method, headers, body: body && JSON.stringify(body) });
  expect(answer.ok, `${method} ${address}: ${answer.status}`).toBeTruthy();
  return answer.json();
}

/** Returns the snapshots that a page receives after it is opened, the newest first. */
export function snapshotsOf(page) {
  const sent = [];
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => sent.unshift(...host.snapshots(payload)))
  );
  return sent;
}

/** A part of a page by its title. */
export const section = (page, name) => page.getByRole('region', { name, exact: true });

/** Takes a picture of a page, named after its place; see picture. */
export const shoot = (page, name, options) => picture(page, `${host.name}-${name}`, options);

/** An expression for the addresses of our calls with this prefix. */
export const callsTo = (path) => new RegExp((host.calls + path).replace(/[.?/]/g, '\\$&'));

/** The pages that require a token: to operate, and to see anything. */
export const doors = {
  public: process.env.PUBLIC_URL,
  closed: process.env.CLOSED_URL,
  token: process.env.SESSION_TOKEN,
};

/** A load generator that sends the same conversations to two clusters. */
export const twin = process.env.TWIN_URL;

/** The load generator that plays back eight hours of snapshots. */
export const replay = process.env.REPLAY_URL;

/** Patterns of a browser's console messages about calls that are refused without the token. */
export const refused = [/401 \(Unauthorized\)/, /WebSocket .* failed/];

/** Patterns of the console messages while the load generator is unreachable. */
export const { gone } = host;

const source = await fs.readFile(new URL('../../../src/pages/registry.ts', import.meta.url), 'utf8');

/**
 * All registered pages: their addresses and titles, whether they are opened from another page, whether they fill the
 * screen, and whether they require a second lane.
 */
export const registered = [...source.matchAll(/path: '([^']*)',\s*title: '([^']*)'([^{}]*)/g)].map(
  ([, path, title, rest]) => ({
    path,
    title,
    nested: rest.includes('nested: true'),
    bare: rest.includes('bare: true'),
    twin: rest.includes('twin: true'),
  })
);

/** The registered pages with an address in place of a pattern. */
export async function addresses() {
  const { conversations } = await eventually('a conversation', async () => {
    const list = await call('GET', '/api/v1/conversations?limit=1');
    return list.conversations.length > 0 && list;
  });
  return registered.map((page) => ({ ...page, path: `/${page.path.replace(':id', conversations[0].id)}` }));
}

/** One of the pages, open in a browser's page. */
export class Page {
  constructor(page) {
    this.page = page;
  }

  /** Opens an address and waits until the state of the workload is shown. */
  static async open(page, path = '/', root = env.loadgen) {
    const opened = new Page(page);
    const { openWithin: timeout } = host;
    await page.goto(host.address(page, path, root), { waitUntil: 'domcontentloaded', timeout });
    await opened.status.waitFor({ timeout });
    return opened;
  }

  /** Opens an address like a link inside the app: nothing is loaded again. */
  static async within(page, path, root = env.loadgen) {
    await page.evaluate(
      (address) => {
        history.pushState(null, '', address);
        dispatchEvent(new PopStateEvent('popstate', { state: null }));
      },
      host.address(page, path, root)
    );
    const opened = new Page(page);
    await expect(page).toHaveURL(host.address(page, path, root));
    await opened.status.waitFor({ timeout: host.openWithin });
    return opened;
  }

  /** The state of the workload, in a word or two. */
  get status() {
    return this.page.locator(`${host.header} [role="status"]`).first();
  }

  button(name) {
    return this.page.locator(host.header).getByRole('button', { name, exact: true });
  }

  /** Confirms an action. */
  confirm(answer) {
    return this.page.getByRole('button', { name: `${answer} (Enter)` }).click();
  }

  /** The slider of the page that has one. */
  get slider() {
    return this.page.getByRole('slider', { name: 'Concurrency', exact: true });
  }

  /** Opens another page by the navigation. */
  async goTo(title) {
    await this.page.locator(host.navigation).getByRole('link', { name: title, exact: true }).click();
  }

  /** Waits until the header shows one of these states. */
  says(words, within) {
    return expect(this.status).toHaveText(words, { timeout: within });
  }

  /** Waits until the page itself is rendered, below the header. */
  async settled() {
    await this.page.locator('main h2').first().waitFor();
    await this.page.waitForFunction(() => document.fonts.ready.then(() => true));
    await eventually('every icon is there, and every color has changed', () =>
      this.page.locator(host.ours).evaluate((ours) => {
        const moving = ours
          .getAnimations({ subtree: true })
          .filter((a) => a instanceof CSSTransition && a.playState === 'running');
        return moving.length === 0 && [...ours.querySelectorAll('svg')].every((svg) => svg.childElementCount > 0);
      })
    );
  }

  /** How far the page, or our part of it, extends beyond its place, in pixels. */
  overflow() {
    return this.page.evaluate((ours) => {
      const places = [document.documentElement, document.querySelector(ours)];
      return Math.max(...places.map((place) => place.scrollWidth - place.clientWidth));
    }, host.ours);
  }
}
