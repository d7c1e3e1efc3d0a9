/** What there is on Grafana's pages, as a visitor finds it. */
import { env, eventually } from './booth.mjs';
import { expect } from './journey.mjs';

/** Where the app's configuration is. */
export const CONFIG_PAGE = '/plugins/kvbooth-inference-app?page=configuration';

/** How long a page of Grafana's may take to come, in milliseconds: the first one brings all its scripts. */
const OPEN_WITHIN = 120_000;

/** Opens one of Grafana's pages and waits until the first thing that matters is there. */
export async function open(page, path, first) {
  await page.goto(env.grafana + path, { waitUntil: 'domcontentloaded', timeout: OPEN_WITHIN });
  await first.waitFor({ timeout: OPEN_WITHIN });
}

/**
 * How long a dashboard waits before it asks its data sources anew. Its own five or ten seconds begin every panel
 * over, be it answered or not, those that follow what is live, too: on a machine that is too busy to answer and
 * draw all of them in that time, some never show anything. Where core panels follow what is live, it has to at
 * times: one whose subscription has failed asks for it anew with the next refresh alone.
 */
const seldom = (uid) => `refresh=${uid === BOOTH ? '30s' : '5m'}`;

/** The dashboard that has the cards. */
const BOOTH = 'kvbooth-booth';

/** A dashboard, open in a page. */
export class Dashboard {
  constructor(page) {
    this.page = page;
  }

  /**
   * Opens a dashboard by its uid and waits until its panels are there. Unless it refreshes as often as it
   * does for its visitors, it refreshes seldom, and on each call of refresh.
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

  /** The panels that say they have failed, by title. */
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
   * Waits until every panel has drawn something, be it before its next refresh, and
   * fails where one of them says that it cannot show its data.
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

  /** Has every panel ask its data source anew, and begins no question over that is not answered yet. */
  async refresh() {
    await this.settle();
    await this.page.getByTestId('data-testid RefreshPicker run button').click();
  }

  /** Refreshes until a condition throws no more. */
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

  /** Waits until every card is as wanted, and gives the cards. */
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
export const CARDS = ['Requests/s, 60 s', 'Requests', 'Tokens/s, 60 s', 'KV Hit, 60 s', 'Queued', 'Errors'];

/** Whether a card says that it has no figure. */
export const isDash = (text) => text === '—';

/** Whether a card shows a figure. */
export const isNumber = (text) => /^\d/.test(text ?? '');

/** The panel that starts, stops and steers. */
export class Controls {
  constructor(root) {
    this.root = root;
  }

  /** What the workload does, in a word or two. */
  get status() {
    return this.root.locator('[role="status"]').first();
  }

  get slider() {
    return this.root.getByRole('slider', { name: 'Concurrency', exact: true });
  }

  button(name) {
    return this.root.getByRole('button', { name, exact: true });
  }

  /** Waits until the panel calls the state by one of these words. */
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

/** The panel that holds what is live against what was recorded. */
export class Comparison {
  constructor(root) {
    this.root = root;
  }

  /** The text of a cell, by its row and by how its column's head begins. */
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

  /** Enters another token in the place of the stored one. */
  async enterToken(token) {
    await this.connection.getByRole('button', { name: 'Reset' }).click();
    await this.connection.locator('#sidecar-token').fill(token);
  }

  /** Saves the connection, which tests it too, and gives what the test says. */
  async save() {
    await this.connection.getByRole('button', { name: 'Save' }).click();
    await this.connection.getByRole('status').filter({ hasText: 'Saved' }).waitFor();
    return this.verdict();
  }

  /** Tests the connection and gives what the page says of it. */
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
