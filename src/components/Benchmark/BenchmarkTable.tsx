import { memo } from 'react';
import { cx } from '@emotion/css';

import type { BaselineRow, Settings } from '../../client';
import { digits } from '../../lib/format';
import { levelsName, levelText, type Level } from '../../lib/level';
import { speculationName } from '../../lib/names';
import { sloOfRow } from '../../lib/slo';
import { stylesOf, verdicts, visuallyHidden } from '../../lib/styles';
import { SLOValue } from '../Comparison';
import { DataTable, type Column } from '../DataTable';
import { gainOf, hoverText, type BenchmarkModel, type Gain, type Kind, type Metric, type Pair } from './model';

interface BenchmarkTableProps {
  caption: string;
  model: BenchmarkModel;
  /** The metrics of which it has the columns; all of them without it. */
  kind?: Kind;
  /** The concurrency of the running workload; undefined while none runs. */
  current?: Level;
}

/** One row per level; three columns per metric. */
export const BenchmarkTable = memo(function BenchmarkTable({ caption, model, kind, current }: BenchmarkTableProps) {
  const styles = useStyles();
  const { baseline, slo, pairs, speculations } = model;
  const metrics = model.metrics.filter((metric) => kind === undefined || metric.kind === kind);
  if (metrics.length === 0) {
    return null;
  }
  const isCurrent = ({ concurrency }: Pair) => concurrency === current;
  const columns: Array<Column<Pair>> = [
    {
      name: levelsName(pairs.map(({ concurrency }) => concurrency)),
      cell: (pair) => (
        <>
          {levelText(pair.concurrency)}
          {speculations && <small>{speculationName(pair.speculation)}</small>}
          {isCurrent(pair) && <small>live now</small>}
        </>
      ),
    },
    ...metrics.flatMap((metric): Array<Column<Pair>> => {
      const { key, heading, note } = metric;
      const words = (
        <>
          {heading}
          {note && <i> {note}</i>}
        </>
      );
      const group = { key, heading: words };
      return [
        {
          group,
          name: 'Round-robin',
          className: styles.first,
          cell: ({ rows }) => <Value metric={metric} row={rows.round_robin} slo={slo} />,
        },
        { group, name: 'KV-aware', cell: ({ rows }) => <Value metric={metric} row={rows.kv} slo={slo} /> },
        { group, name: 'Improvement', cell: (pair) => <Improvement gain={gainOf(metric, pair, baseline)} /> },
      ];
    }),
  ];
  return (
    <DataTable
      label={caption}
      className={styles.table}
      columns={columns}
      rows={pairs}
      keyOf={({ concurrency, speculation }) => `${concurrency} ${speculation}`}
      rowClass={(pair) => cx(isCurrent(pair) && styles.current)}
      isCurrent={isCurrent}
    />
  );
});

function Value({ metric, row, slo }: { metric: Metric; row?: BaselineRow; slo: Settings['slo'] }) {
  const styles = useStyles();
  const value = row && metric.value(row);
  if (!row || value === undefined) {
    return <span className={styles.none}>not recorded</span>;
  }
  return (
    <SLOValue level={metric.slo && sloOfRow(row, metric.slo, value, slo)} hover={hoverText(metric, row)}>
      {digits(value, metric.format)}
    </SLOValue>
  );
}

function Improvement({ gain }: { gain?: Gain }) {
  const styles = useStyles();
  return gain ? (
    <span className={styles[gain.kind]} title={gain.verdict}>
      {gain.text}
      {gain.kind === 'same' && <span className={styles.hidden}> {gain.verdict}</span>}
    </span>
  ) : (
    <span aria-label="not known">—</span>
  );
}

const useStyles = stylesOf((theme) => {
  const { text, border, background, primary } = theme.colors;
  const small = theme.typography.bodySmall.fontSize;
  return {
    hidden: visuallyHidden,
    table: {
      '& th, & td': { padding: theme.spacing(0.5, 0.75), verticalAlign: 'baseline', whiteSpace: 'nowrap' },
      '& td, & thead tr:last-child th': { textAlign: 'right' },
      '& th': { fontWeight: theme.typography.fontWeightMedium },
      '& thead th': { verticalAlign: 'bottom' },
      '& thead tr:last-child th': { fontSize: small },
      [theme.breakpoints.down('sm')]: {
        fontSize: small,
        '& th, & td': { padding: theme.spacing(0.5) },
        '& thead tr:last-child th': { whiteSpace: 'normal' },
      },
      '& tbody th small': { fontSize: small },
    },
    first: { borderLeft: `1px solid ${border.weak}` },
    current: {
      background: background.secondary,
      '&& > :first-child': {
        background: background.secondary,
        boxShadow: `inset 3px 0 0 ${primary.main}`,
      },
    },
    none: { color: text.secondary, fontSize: small },
    ...verdicts(theme),
  };
});
