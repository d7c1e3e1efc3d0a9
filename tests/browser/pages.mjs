/** Grafana's pages for a visitor. */
import { env, eventually } from './booth.mjs';
import { expect } from './journey.mjs';

/** The address of the app's configuration. */
export const CONFIG_PAGE = '/plugins/kvbooth-inference-app?page=configuration';

/** The timeout of a page of Grafana, in milliseconds: the first one loads all scripts. */
const OPEN_WITHIN = 120_000;

/** Opens one of Grafana's pages and waits until its first important element is rendered. */
export async function open(page, path, first) {
  await page.goto(env.grafana + path, { waitUntil: 'domcontentloaded', timeout: OPEN_WITHIN });
  await first.waitFor({ timeout: OPEN_WITHIN });
}

/**
 * The refresh interval of a dashboard in these tests. With its own five or ten seconds, every panel starts over,
 * whether its request was answered or not, and so do those that follow live data. On a machine that is too busy to
 * answer and draw all of them in that time, some would never show anything. Core panels that follow live data require a
 * refresh at times: a failed subscription is renewed only by the next refresh.
 */
const seldom = (uid) => `refresh=${uid === BOOTH ? '30s' : '5m'}`;

/** The dashboard with the cards. */
const BOOTH = 'kvbooth-booth';

/** A dashboard, open in a page. */
export class Dashboard {
  constructor(page) {
    this.page = page;
  }

  /**
   * Opens a dashboard by its uid and waits until its panels are rendered. Unless it keeps the refresh interval of its
   * visitors, it refreshes rarely, and on each call of refresh.
   */
  static async open(page, uid, query = '', { refreshes = false } = {}) {
    const address = refreshes ? query : `${query ? `${query}&` : '?'}${seldom(uid)}`;
    await open(page, `/d/${uid}${address}`, page.locator('[data-viz-panel-key]').first());
    const dashboard = new Dashboard(page);
    if (uid === BOOTH) {
      await dashboard.controls.root.waitFor({ timeout: OPEN_WITHIN });
      await dashboard.comparison.root.waitFor({ timeout: OPEN_WITHIN });
      const drawn = async () => Object.values(await dashboard.cards()).every(Boolean);
      await eventually('the cards are drawn', drawn, { within: OPEN_WITHIN });
    }
    return dashboard;
  }

  /** The panels that report an error, by title. */
  async problems() {
    return this.page.evaluate(() => {
      const failed = document.querySelectorAll('[data-testid="data-testid Panel status error"]');
      const panels = [...failed].map((mark) => {
        const panel = mark.closest('[data-viz-panel-key]');
        return `${panel?.querySelector('h2, h6')?.textContent ?? 'a panel'}: ${mark.getAttribute('aria-label') ?? ''}`;
      });
      const words = [
        'An unexpected error happened',
        'Panel plugin not found',
        'Error loading',
        'Plugin failed to load',
      ];
      return [...panels, ...words.filter((text) => document.body.innerText.includes(text))];
    });
  }

  /**
   * Waits until every panel has drawn something, even if it is only before its next refresh, and fails where one of
   * them reports that it cannot show its data.
   */
  async settle() {
    const drawn = new Set();
    await eventually(
      'every panel has drawn',
      async () => {
        const panels = await this.panels();
        panels.filter(({ rests }) => rests).forEach(({ key }) => drawn.add(key));
        const missing = panels.filter(({ key }) => !drawn.has(key)).map(({ key }) => key);
        if (panels.length === 0 || missing.length > 0) {
          throw new Error(`missing: ${missing}`);
        }
        return true;
      },
      { within: OPEN_WITHIN }
    );
    expect(await this.problems(), 'no panel fails').toEqual([]);
  }

  /** Refreshes every panel whose last request was answered. */
  async refresh() {
    await this.settle();
    await this.page.getByTestId('data-testid RefreshPicker run button').click();
  }

  /** Refreshes until a condition no longer throws. */
  refreshUntil(what, condition) {
    return eventually(
      what,
      async () => {
        try {
          await condition();
          return true;
        } catch (error) {
          await this.refresh();
          throw error;
        }
      },
      { within: OPEN_WITHIN }
    );
  }

  /** The panels, and whether each has drawn something and loads nothing. */
  panels() {
    return this.page.evaluate(() =>
      [...document.querySelectorAll('[data-viz-panel-key]')].map((panel) => {
        const content = panel.querySelector('[data-testid="data-testid panel content"]');
        const loading = panel.querySelector('[aria-label="Panel loading bar"]');
        return { key: panel.dataset.vizPanelKey, rests: Boolean(content?.firstElementChild) && !loading };
      })
    );
  }

  /** The texts of the six cards, by name. */
  async cards() {
    const texts = await this.page
      .locator('[data-viz-panel-key="panel-1"], [data-viz-panel-key="panel-13"]')
      .allInnerTexts();
    const lines = texts
      .join('\n')
      .split('\n')
      .map((line) => line.trim())
      .filter(Boolean);
    return Object.fromEntries(CARDS.map((name) => [name, lines.includes(name) && lines[lines.indexOf(name) + 1]]));
  }

  /** Waits until every card satisfies its condition, and returns the cards. */
  cardsUntil(what, wanted, within) {
    return eventually(
      what,
      async () => {
        const cards = await this.cards();
        if (!Object.values(cards).every(wanted)) {
          throw new Error(JSON.stringify(cards));
        }
        return cards;
      },
      { within }
    );
  }

  /** A panel by its title. */
  panel(title) {
    return this.page
      .locator('[data-viz-panel-key]')
      .filter({ has: this.page.getByRole('heading', { name: title, exact: true }) });
  }

  get controls() {
    return new Controls(this.page.locator('section[aria-label="Workload controls"]'));
  }

  get comparison() {
    return new Comparison(this.page.locator('section[aria-label="Live against baseline"]'));
  }
}

/** The six cards of the dashboard booth. */
export const CARDS = ['Requests/s, 60 s', 'Requests', 'Output tokens/s, 60 s', 'KV hit rate, 60 s', 'Queued', 'Errors'];

/** Whether a card reports that it has no figure. */
export const isDash = (text) => text === '—';

/** Whether a card shows a figure. */
export const isNumber = (text) => /^\d/.test(text ?? '');

/** The panel with the controls of the workload. */
export class Controls {
  constructor(root) {
    this.root = root;
  }

  /** The state of the workload, in a word or two. */
  get status() {
    return this.root.locator('[role="status"]').first();
  }

  get slider() {
    return this.root.getByRole('slider', { name: 'Concurrency', exact: true });
  }

  button(name) {
    return this.root.getByRole('button', { name, exact: true });
  }

  /** Waits until the panel shows one of these states. */
  says(words, within) {
    return expect(this.status).toHaveText(words, { timeout: within });
  }

  /** A figure of the head line, such as Target. */
  async figure(name) {
    const text = await this.root
      .locator('dl > div', { has: this.root.page().locator(`dt:text-is("${name}")`) })
      .locator('dd')
      .innerText();
    return text.trim();
  }
}

/** The panel that compares live figures with recorded ones. */
export class Comparison {
  constructor(root) {
    this.root = root;
  }

  /** The text of a cell, by its row and by the beginning of its column's head. */
  async cell(row, head) {
    return this.root.evaluate(
      (section, [row, head]) => {
        const plain = (element) => element.innerText.replace(/\s+/g, ' ').trim();
        for (const table of section.querySelectorAll('table')) {
          const at = [...table.querySelectorAll('thead th')].findIndex((th) => plain(th).startsWith(head));
          const line = [...table.querySelectorAll('tbody tr')].find((tr) => plain(tr.cells[0]) === row);
          if (at > 0 && line) {
            return plain(line.cells[at]);
          }
        }
        return undefined;
      },
      [row, head]
    );
  }
}

/** The app's configuration. */
export class ConfigPage {
  constructor(page) {
    this.page = page;
    this.connection = page.getByRole('form', { name: 'Connection' });
    this.loadgen = page.getByRole('form', { name: 'Load generator' });
  }

  static async open(page, theme = 'dark') {
    const config = new ConfigPage(page);
    await open(page, `${CONFIG_PAGE}&theme=${theme}`, config.connection);
    return config;
  }

  get url() {
    return this.connection.getByLabel('Load generator URL');
  }

  /** Replaces the stored token by another one. */
  async enterToken(token) {
    await this.connection.getByRole('button', { name: 'Reset' }).click();
    await this.connection.locator('#sidecar-token').fill(token);
  }

  /** Saves the connection, which also tests it, and returns the result of the test. */
  async save() {
    await this.connection.getByRole('button', { name: 'Save' }).click();
    await this.connection.getByRole('status').filter({ hasText: 'Saved' }).waitFor();
    return this.verdict();
  }

  /** Tests the connection and returns the page's message. */
  async test() {
    await this.connection.getByRole('button', { name: 'Test connection' }).click();
    return this.verdict();
  }

  async verdict() {
    const alert = this.connection.locator('[data-testid^="data-testid Alert"]');
    await alert.waitFor();
    return (await alert.innerText()).replace(/\s+/g, ' ');
  }
}
