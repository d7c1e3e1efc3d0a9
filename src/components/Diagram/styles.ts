import { stylesOf, wideDrawing } from '../../lib/styles';

/** What all drawings have in common; lengths are units of a drawing's view box. */
export const useDiagramStyles = stylesOf((theme) => {
  const { text, border, background, primary, info } = theme.colors;
  const words = { fontFamily: theme.typography.fontFamily, fill: text.primary, fontVariantNumeric: 'tabular-nums' };
  const box = { stroke: border.strong, strokeWidth: 1.5, fill: background.secondary };
  const line = { fill: 'none', stroke: text.secondary, strokeWidth: 2 };
  return {
    scroll: wideDrawing,
    svg: { display: 'block', width: '100%', height: 'auto' },
    title: { ...words, fontSize: 17, fontWeight: theme.typography.fontWeightMedium },
    value: { ...words, fontSize: 22, fontWeight: theme.typography.fontWeightBold },
    small: { ...words, fontSize: 15, fill: text.secondary },
    plain: box,
    accent: { ...box, stroke: info.border, strokeWidth: 3 },
    absent: { ...box, fill: 'none', strokeDasharray: '6 6' },
    muted: { '& text': { fill: text.secondary, fontWeight: theme.typography.fontWeightRegular } },
    button: {
      cursor: 'pointer',
      '&:hover > rect:first-of-type': { stroke: text.primary },
      '&:focus': { outline: 'none' },
      '&:focus-visible > rect:first-of-type': { stroke: primary.text, strokeWidth: 5 },
    },
    selected: { '& > rect:first-of-type': { stroke: primary.text, strokeWidth: 4 } },
    solid: line,
    dashed: { ...line, strokeDasharray: '8 6' },
    dotted: { ...line, strokeDasharray: '2 6', strokeLinecap: 'round' },
    faint: { ...line, stroke: border.medium, strokeDasharray: '4 6' },
    head: { fill: text.secondary },
  };
});
