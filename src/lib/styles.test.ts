/** @jest-environment node */
import { colorManipulator, createTheme } from '@grafana/data';

import { comparisonColors, verdicts, workerColors } from './styles';

const { getContrastRatio } = colorManipulator;

describe.each(['dark', 'light'] as const)('the colours of the %s theme', (mode) => {
  const theme = createTheme({ colors: { mode } });
  const { canvas, primary, secondary } = theme.colors.background;
  const comparison = comparisonColors(theme);

  it('are read on every background', () => {
    const texts = [...Object.values(verdicts(theme)).map(({ color }) => color), ...Object.values(comparison)];
    for (const background of [canvas, primary, secondary]) {
      for (const text of texts) {
        expect(getContrastRatio(text, background, background)).toBeGreaterThanOrEqual(4.5);
      }
      for (const worker of workerColors(theme)) {
        expect(getContrastRatio(worker, background)).toBeGreaterThanOrEqual(3);
      }
    }
  });

  it('tell better from worse by lightness, too, and have neither in common with the SLO', () => {
    const { better, worse } = comparison;
    expect(getContrastRatio(better, worse)).toBeGreaterThanOrEqual(1.4);
    const { met, near, missed } = verdicts(theme);
    const all = [better, worse, met.color, near.color, missed.color, ...workerColors(theme)];
    expect(new Set(all).size).toBe(all.length);
  });
});
