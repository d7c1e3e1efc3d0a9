import axe from 'axe-core';

/**
 * Returns the violations of WCAG 2 AA in an element, in words. Contrast requires a real browser and is tested there.
 */
export async function violations(element: Element): Promise<string[]> {
  document.head.querySelectorAll('style').forEach((style) => style.remove()); // jsdom needs seconds to apply them
  const result = await axe.run(element, {
    runOnly: { type: 'tag', values: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] },
    rules: { 'color-contrast': { enabled: false }, region: { enabled: false } },
  });
  return result.violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
}
