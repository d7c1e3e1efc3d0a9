import { createTheme, type GrafanaTheme2 } from '@grafana/data';

import type { Scheme } from './useScheme';

/** Code is shown in the system's own font: a font of ours would be downloaded for a few words. */
const typography = {
  fontFamilyMonospace: 'ui-monospace, "Cascadia Mono", "Liberation Mono", Menlo, Consolas, monospace',
};

const themes: Record<Scheme, GrafanaTheme2> = {
  dark: createTheme({ colors: { mode: 'dark' }, typography }),
  light: createTheme({ colors: { mode: 'light' }, typography }),
};

/** Grafana's theme of a colour scheme. */
export function themeOf(scheme: Scheme): GrafanaTheme2 {
  return themes[scheme];
}
