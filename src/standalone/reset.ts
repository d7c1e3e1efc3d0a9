import { injectGlobal } from '@emotion/css';

/** What Grafana's own style sheet sets before its components set the rest. */
injectGlobal({
  'body, ul, ol, h1, h2, h3, h4, h5, h6, figure': { margin: 0 },
  'ul, ol': { padding: 0 },
  a: { color: 'inherit', textDecoration: 'none' },
  'button, input, select, textarea': { font: 'inherit', color: 'inherit' },
});

export {};
