import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';

import { wideDrawing } from '../../lib/styles';

/** What all drawings have in common; lengths are units of a drawing's view box. */
export const getDiagramStyles = (theme: GrafanaTheme2) => {
  const { text, border, background, primary, info } = theme.colors;
  const words = { fontFamily: theme.typography.fontFamily, fill: text.primary, fontVariantNumeric: 'tabular-nums' };
  const box = { stroke: border.strong, strokeWidth: 1.5, fill: background.secondary };
  const line = { fill: 'none', stroke: text.secondary, strokeWidth: 2 };
  return {
    scroll: wideDrawing,
    svg: css({ display: 'block', width: '100%', height: 'auto' }),
    title: css({ ...words, fontSize: 17, fontWeight: theme.typography.fontWeightMedium }),
    value: css({ ...words, fontSize: 22, fontWeight: theme.typography.fontWeightBold }),
    small: css({ ...words, fontSize: 15, fill: text.secondary }),
    plain: css(box),
    accent: css({ ...box, stroke: info.border, strokeWidth: 3 }),
    absent: css({ ...box, fill: 'none', strokeDasharray: '6 6' }),
    muted: css({ '& text': { fill: text.secondary, fontWeight: theme.typography.fontWeightRegular } }),
    button: css({
      cursor: 'pointer',
      '&:hover > rect:first-of-type': { stroke: text.primary },
      '&:focus': { outline: 'none' },
      '&:focus-visible > rect:first-of-type': { stroke: primary.text, strokeWidth: 5 },
    }),
    selected: css({ '& > rect:first-of-type': { stroke: primary.text, strokeWidth: 4 } }),
    solid: css(line),
    dashed: css({ ...line, strokeDasharray: '8 6' }),
    dotted: css({ ...line, strokeDasharray: '2 6', strokeLinecap: 'round' }),
    faint: css({ ...line, stroke: border.medium, strokeDasharray: '4 6' }),
    head: css({ fill: text.secondary }),
  };
};
