import type { GrafanaTheme2 } from '@grafana/data';

import type { ChartLine, Tone } from './types';

/** Distinct without colors, too: one is light, one dark, against the background. */
const names: Record<Tone, [dark: string, light: string]> = {
  kv: ['light-blue', 'dark-blue'],
  round_robin: ['orange', 'dark-orange'],
  least_loaded: ['purple', 'dark-purple'],
  unknown: ['light-green', 'dark-green'],
};

/** The color of a mode. */
export function toneColor({ isDark, visualization }: GrafanaTheme2, tone: Tone): string {
  return visualization.getColorByName(names[tone][isDark ? 0 : 1]);
}

/** The color of a line. */
export function lineColor(theme: GrafanaTheme2, { tone, color }: Pick<ChartLine, 'tone' | 'color'>): string {
  return color ?? toneColor(theme, tone);
}
