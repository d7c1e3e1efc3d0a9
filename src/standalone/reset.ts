import { injectGlobal } from '@emotion/css';

/** The global styles that Grafana's own style sheet sets below its components. */
injectGlobal({
  // All font sizes are multiples of this one: 14 px up to a width of 1920, 16 at 2560, 20 at 3840.
  'html:root': { fontSize: 'max(14px, 8px + 0.3125vw)' },
  'body, ul, ol, h1, h2, h3, h4, h5, h6, figure': { margin: 0 },
  'ul, ol': { padding: 0 },
  a: { color: 'inherit', textDecoration: 'none' },
  // The medium face is loaded anyway; italics would be one more font.
  i: { fontStyle: 'normal', fontWeight: 500 },
  'button, input, select, textarea': { font: 'inherit', color: 'inherit' },
  // White text on a background that is omitted on paper would be invisible.
  'button, input:checked + label': { printColorAdjust: 'exact' },
});

export {};
