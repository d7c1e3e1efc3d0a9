import { stylesOf, verdicts } from '../../lib/styles';

/** The styles of a sweep's tables. */
export const useTableStyles = stylesOf((theme) => ({
  table: {
    '& th': { fontWeight: theme.typography.fontWeightMedium },
    '& thead th': { verticalAlign: 'bottom' },
  },
  word: { whiteSpace: 'nowrap' },
  figure: { '&&': { textAlign: 'right' }, whiteSpace: 'nowrap' },
  beside: {
    display: 'block',
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
  },
  note: { ...theme.typography.bodySmall, margin: 0, color: theme.colors.text.secondary, textWrap: 'pretty' },
  reason: { minWidth: '24ch' },
  spoiled: { color: theme.colors.warning.text },
  ...verdicts(theme),
}));
