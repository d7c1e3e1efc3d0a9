import React, { memo } from 'react';
import { css, cx } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { BaselineRow, Settings } from '../../client';
import { DASH, digits, number } from '../../lib/format';
import { sloLevel } from '../../lib/slo';
import { verdicts, visuallyHidden } from '../../lib/styles';
import { modeText } from '../../lib/names';

import { modeKey } from './form';
import { metrics, range, type Metric } from './metrics';

interface RowsTableProps {
  rows: BaselineRow[];
  slo: Settings['slo'] | undefined;
}

const CAPTION = 'Figures of each level and mode, with 95 % intervals';

/** The figures of each level and mode. A wide table scrolls by itself, never the page. */
export const RowsTable = memo(function RowsTable({ rows, slo }: RowsTableProps) {
  const styles = useStyles2(getStyles);
  return (
    <div className={styles.container} tabIndex={0} role="group" aria-label={CAPTION}>
      <table className={styles.table}>
        <caption className={visuallyHidden}>{CAPTION}</caption>
        <thead>
          <tr>
            <th scope="col">Concurrency</th>
            <th scope="col">Mode</th>
            {metrics.map(({ key, name, unit }) => (
              <th key={key} scope="col">
                {name}, {unit}
              </th>
            ))}
            <th scope="col">Turns</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.concurrency} ${modeKey(row)}`}>
              <th scope="row">{number(row.concurrency)}</th>
              <td>{modeText(row)}</td>
              {metrics.map((metric) => (
                <td key={metric.key}>
                  <Value metric={metric} row={row} slo={slo} />
                </td>
              ))}
              <td>{number(row.n)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
});

interface ValueProps {
  metric: Metric;
  row: BaselineRow;
  slo: Settings['slo'] | undefined;
}

function Value({ metric, row, slo }: ValueProps) {
  const styles = useStyles2(getStyles);
  const value = metric.value(row);
  if (value === undefined) {
    return <>{DASH}</>;
  }
  const level = metric.slo && sloLevel(value, slo?.[metric.slo]);
  const interval = metric.interval(row);
  return (
    <>
      <span className={cx(level === 'missed' && styles.missed)}>
        {digits(value, metric.format)}
        {level === 'missed' && (
          <>
            {' '}
            <span aria-hidden="true">✕</span>
            <span className={visuallyHidden}>misses the SLO</span>
          </>
        )}
      </span>
      {interval && <small>{range(interval, metric.format)}</small>}
    </>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  missed: css(verdicts(theme).missed),
  container: css({ position: 'relative', overflowX: 'auto' }),
  table: css({
    width: '100%',
    fontVariantNumeric: 'tabular-nums',
    '& th, & td': {
      padding: theme.spacing(0.5, 0.75),
      textAlign: 'right',
      verticalAlign: 'baseline',
      whiteSpace: 'nowrap',
      borderBottom: `1px solid ${theme.colors.border.weak}`,
    },
    '& th': { fontWeight: theme.typography.fontWeightMedium },
    '& thead th': { color: theme.colors.text.secondary, whiteSpace: 'normal', verticalAlign: 'bottom' },
    '& th:first-child, & td:nth-child(2), & th:nth-child(2)': { textAlign: 'left' },
    '& small': { display: 'block', color: theme.colors.text.secondary },
  }),
});
