import { memo } from 'react';
import { cx } from '@emotion/css';

import { digits } from '../../lib/format';
import { levelsName, levelText } from '../../lib/level';
import { speculationName } from '../../lib/names';
import { stylesOf, verdicts, visuallyHidden } from '../../lib/styles';
import { SLOValue } from '../Comparison';
import { DataTable, type Column } from '../DataTable';
import type { BenchmarkModel, Cell, Gain, Row } from './model';

interface BenchmarkTableProps {
  caption: string;
  model: BenchmarkModel;
}

/** One row per level; three columns per metric. */
export const BenchmarkTable = memo(function BenchmarkTable({ caption, model }: BenchmarkTableProps) {
  const styles = useStyles();
  const { metrics, rows, speculations } = model;
  if (metrics.length === 0) {
    return null;
  }
  const columns: Array<Column<Row>> = [
    {
      name: levelsName(rows.map(({ concurrency }) => concurrency)),
      cell: ({ concurrency, speculation, current }) => (
        <>
          {levelText(concurrency)}
          {speculations && <small>{speculationName(speculation)}</small>}
          {current && <small>live now</small>}
        </>
      ),
    },
    ...metrics.flatMap(({ key, name, note }, i): Array<Column<Row>> => {
      const heading = (
        <>
          {name}
          {note && <i> {note}</i>}
        </>
      );
      const group = { key, heading };
      return [
        {
          group,
          name: 'Round-robin',
          className: styles.first,
          cell: (row) => <Value cell={row.groups[i].roundRobin} />,
        },
        { group, name: 'KV-aware', cell: (row) => <Value cell={row.groups[i].kv} /> },
        { group, name: 'Improvement', cell: (row) => <Improvement gain={row.groups[i].gain} /> },
      ];
    }),
  ];
  return (
    <DataTable
      label={caption}
      className={styles.table}
      columns={columns}
      rows={rows}
      keyOf={({ concurrency, speculation }) => `${concurrency} ${speculation}`}
      rowClass={({ current }) => cx(current && styles.current)}
      isCurrent={({ current }) => current}
    />
  );
});

function Value({ cell }: { cell?: Cell }) {
  const styles = useStyles();
  if (!cell) {
    return <span className={styles.none}>not recorded</span>;
  }
  return (
    <SLOValue level={cell.slo} hover={cell.hover}>
      {digits(cell.value, cell.format)}
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
