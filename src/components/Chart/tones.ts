import type { GrafanaTheme2 } from '@grafana/data';

import type { ChartLine, Tone } from './types';

/** Distinct without colors, too: against the background, one is light and one dark. */
const names: Record<Exclude<Tone, 'unknown'>, [dark: string, light: string]> = {
  kv: ['light-blue', 'dark-blue'],
  round_robin: ['orange', 'dark-orange'],
  least_loaded: ['purple', 'dark-purple'],
};

/** The look of a line whose values were measured before their step had settled. */
export const SETTLING = { tone: 'unknown', look: 'dotted' } as const;

/** The color of a mode. */
export function toneColor({ isDark, colors, visualization }: GrafanaTheme2, tone: Tone): string {
  return tone === 'unknown' ? colors.text.secondary : visualization.getColorByName(names[tone][isDark ? 0 : 1]);
}

/** The color of a line. */
export function lineColor(theme: GrafanaTheme2, { tone, color }: Pick<ChartLine, 'tone' | 'color'>): string {
  return color ?? toneColor(theme, tone);
}
