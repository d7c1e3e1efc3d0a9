/** @jest-environment node */
import { colorManipulator, createTheme } from '@grafana/data';

import { comparisonColors, verdicts, workerColors } from './styles';

const { decomposeColor, getContrastRatio } = colorManipulator;

/** The hue of a color, in degrees. */
function hueOf(color: string): number {
  const [red, green, blue] = decomposeColor(color).values;
  const degrees = Math.atan2(Math.sqrt(3) * (green - blue), 2 * red - green - blue) * (180 / Math.PI);
  return (degrees + 360) % 360;
}

/** Returns the distance of two hues on their circle. */
function hueDistance(a: string, b: string): number {
  const apart = Math.abs(hueOf(a) - hueOf(b));
  return Math.min(apart, 360 - apart);
}

describe.each(['dark', 'light'] as const)('the colors of the %s theme', (mode) => {
  const theme = createTheme({ colors: { mode } });
  const { canvas, primary, secondary } = theme.colors.background;
  const comparison = comparisonColors(theme);

  it('are legible on every background', () => {
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

  it('distinguish better from worse by lightness, too, and have neither in common with the SLO', () => {
    const { better, worse } = comparison;
    expect(getContrastRatio(better, worse)).toBeGreaterThanOrEqual(1.4);
    const { met, near, missed } = verdicts(theme);
    const all = [better, worse, met.color, near.color, missed.color, ...workerColors(theme)];
    expect(new Set(all).size).toBe(all.length);
    for (const color of [better, worse]) {
      for (const objective of [met.color, near.color, missed.color]) {
        expect(hueDistance(color, objective)).toBeGreaterThanOrEqual(45);
      }
    }
  });
});
