/** The violations of WCAG 2 AA on a page. */
import fs from 'node:fs/promises';
import { createRequire } from 'node:module';

import { expect } from '@playwright/test';

import { eventually } from './booth.mjs';

const axe = await fs.readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** The rules about colors: another color scheme changes no result of the others. */
const COLORS = ['color-contrast', 'link-in-text-block'];

/** Returns axe's violations within the elements, one line each. */
export const violations = (page, ...within) => run(page, { type: 'tag', values: RULES }, within);

/** Returns the color violations of a page in its other color scheme. */
export const colorViolations = (page, ...within) => run(page, { type: 'rule', values: COLORS }, within);

async function run(page, runOnly, within) {
  await page.evaluate(axe);
  // A change of colors begins with the next frame, and the colors of buttons change by a transition.
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  await eventually('every color has changed', async () => {
    const running = await page.evaluate(() =>
      document
        .getAnimations()
        .filter((a) => a instanceof CSSTransition && a.playState === 'running')
        .map(({ transitionProperty, effect }) => `${transitionProperty} of ${effect.target.outerHTML.slice(0, 120)}`)
    );
    if (running.length > 0) {
      throw new Error(running.join(', '));
    }
    return true;
  });
  const found = await page.evaluate(
    ([include, runOnly]) => window.axe.run({ include }, { runOnly, resultTypes: ['violations'] }),
    [within.map((selector) => [selector]), runOnly]
  );
  expect(found.passes.length, 'axe has looked at something').toBeGreaterThan(0);
  return found.violations.flatMap(({ id, help, nodes }) =>
    nodes.map((node) => `${id}: ${help}: ${node.html.slice(0, 160)} ${node.any.map((c) => c.message)}`)
  );
}
