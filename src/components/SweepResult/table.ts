import { PROPORTIONAL, stylesOf, verdicts, wideTable } from '../../lib/styles';

/** The styles of a sweep's tables. */
export const useTableStyles = stylesOf((theme) => ({
  container: wideTable(theme),
  table: {
    width: '100%',
    fontVariantNumeric: 'tabular-nums',
    '& th, & td': {
      padding: theme.spacing(0.5, 0.75),
      textAlign: 'left',
      verticalAlign: 'baseline',
      borderBottom: `1px solid ${theme.colors.border.weak}`,
    },
    '& th': { fontWeight: theme.typography.fontWeightMedium, ...PROPORTIONAL },
    '& thead th': { color: theme.colors.text.secondary, verticalAlign: 'bottom' },
  },
  word: { whiteSpace: 'nowrap' },
  figure: { '&&': { textAlign: 'right' }, whiteSpace: 'nowrap' },
  beside: {
    display: 'block',
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
  },
  reason: { minWidth: '24ch' },
  spoiled: { color: theme.colors.warning.text },
  ...verdicts(theme),
}));
