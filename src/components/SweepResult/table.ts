import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';

import { PROPORTIONAL, verdicts, wideTable } from '../../lib/styles';

/** The styles of a sweep's tables. */
export const getTableStyles = (theme: GrafanaTheme2) => {
  const { met, near, missed } = verdicts(theme);
  return {
    container: wideTable(theme),
    table: css({
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
    }),
    word: css({ whiteSpace: 'nowrap' }),
    figure: css({ '&&': { textAlign: 'right' }, whiteSpace: 'nowrap' }),
    beside: css({
      display: 'block',
      color: theme.colors.text.secondary,
      fontSize: theme.typography.bodySmall.fontSize,
    }),
    reason: css({ minWidth: '24ch' }),
    spoiled: css({ color: theme.colors.warning.text }),
    level: { met: css(met), near: css(near), missed: css(missed) },
  };
};
