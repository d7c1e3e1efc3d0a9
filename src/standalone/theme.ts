import { createTheme, type GrafanaTheme2 } from '@grafana/data';

import type { Scheme } from './useScheme';

/** Code uses the system's own font, which saves a download for a few words. */
const typography = {
  fontFamilyMonospace: 'ui-monospace, "Cascadia Mono", "Liberation Mono", Menlo, Consolas, monospace',
};

const themes: Record<Scheme, GrafanaTheme2> = {
  dark: createTheme({ colors: { mode: 'dark' }, typography }),
  light: createTheme({ colors: { mode: 'light' }, typography }),
};

/** Returns Grafana's theme of a color scheme. */
export function themeOf(scheme: Scheme): GrafanaTheme2 {
  return themes[scheme];
}
