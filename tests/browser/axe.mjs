/** What WCAG 2 AA has against a page. */
import fs from 'node:fs/promises';
import { createRequire } from 'node:module';

import { expect } from '@playwright/test';

const axe = await fs.readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const RULES = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

/** Gives what axe finds within the elements, one line a violation. */
export async function violations(page, ...within) {
  await page.evaluate(axe);
  const found = await page.evaluate(
    ([include, values]) => window.axe.run({ include }, { runOnly: { type: 'tag', values } }),
    [within.map((selector) => [selector]), RULES]
  );
  expect(found.passes.length, 'axe has looked at something').toBeGreaterThan(0);
  return found.violations.flatMap(({ id, help, nodes }) =>
    nodes.map((node) => `${id}: ${help}: ${node.html.slice(0, 160)} ${node.any.map((c) => c.message)}`)
  );
}
