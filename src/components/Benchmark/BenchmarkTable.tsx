import { Fragment, memo } from 'react';
import { cx } from '@emotion/css';

import { digits, number } from '../../lib/format';
import { speculationName } from '../../lib/names';
import { PROPORTIONAL, stylesOf, verdicts, visuallyHidden, wideTable } from '../../lib/styles';
import { SLOMark } from '../Comparison';
import type { BenchmarkModel, Cell, Gain, Group, Metric } from './model';

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
  return (
    <div className={styles.container} tabIndex={0} role="group" aria-label={caption}>
      <table className={styles.table}>
        <caption className={styles.hidden}>{caption}</caption>
        <Heads metrics={metrics} />
        <tbody>
          {rows.map(({ concurrency, speculation, current, groups }) => (
            <tr
              key={`${concurrency} ${speculation}`}
              className={cx(current && styles.current)}
              aria-current={current || undefined}
            >
              <th scope="row">
                {number(concurrency)}
                {speculations && <small>{speculationName(speculation)}</small>}
                {current && <small>live now</small>}
              </th>
              {groups.map((group, i) => (
                <GroupCells key={metrics[i].key} group={group} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
});

function Heads({ metrics }: { metrics: Metric[] }) {
  const styles = useStyles();
  return (
    <thead>
      <tr>
        <th scope="col" rowSpan={2}>
          Concurrency
        </th>
        {metrics.map(({ key, name, note }) => (
          <th key={key} scope="colgroup" colSpan={3} className={styles.group}>
            {name}
            {note && <i> {note}</i>}
          </th>
        ))}
      </tr>
      <tr>
        {metrics.map(({ key }) => (
          <Fragment key={key}>
            <th scope="col" className={styles.first}>
              Round-robin
            </th>
            <th scope="col">KV-aware</th>
            <th scope="col">Improvement</th>
          </Fragment>
        ))}
      </tr>
    </thead>
  );
}

function GroupCells({ group: { roundRobin, kv, gain } }: { group: Group }) {
  const styles = useStyles();
  return (
    <>
      <td className={styles.first}>
        <Value cell={roundRobin} />
      </td>
      <td>
        <Value cell={kv} />
      </td>
      <td>
        <Improvement gain={gain} />
      </td>
    </>
  );
}

function Value({ cell }: { cell?: Cell }) {
  const styles = useStyles();
  if (!cell) {
    return <small className={styles.none}>not recorded</small>;
  }
  return (
    <span className={cell.slo && styles[cell.slo]}>
      {digits(cell.value, cell.format)} {cell.slo && <SLOMark level={cell.slo} />}
    </span>
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
  const { text, border, background } = theme.colors;
  return {
    hidden: visuallyHidden,
    container: wideTable(theme),
    table: {
      width: '100%',
      fontVariantNumeric: 'tabular-nums',
      '& th, & td': {
        padding: theme.spacing(0.5, 0.75),
        textAlign: 'right',
        verticalAlign: 'baseline',
        whiteSpace: 'nowrap',
        borderBottom: `1px solid ${border.weak}`,
      },
      '& th': { fontWeight: theme.typography.fontWeightMedium },
      '& th:first-child[scope="row"], & th[rowspan]': { textAlign: 'left', paddingLeft: theme.spacing(1) },
      '& thead th': { color: text.secondary, verticalAlign: 'bottom', ...PROPORTIONAL },
      '& thead tr:last-child th': { fontSize: theme.typography.bodySmall.fontSize },
      [theme.breakpoints.down('sm')]: {
        fontSize: theme.typography.bodySmall.fontSize,
        '& th, & td': { padding: theme.spacing(0.5) },
        '& thead tr:last-child th': { whiteSpace: 'normal' },
      },
      '& tbody th small': { display: 'block', fontSize: theme.typography.bodySmall.fontSize, color: text.secondary },
    },
    group: { '&&': { textAlign: 'center', color: text.primary, borderLeft: `1px solid ${border.weak}` } },
    first: { borderLeft: `1px solid ${border.weak}` },
    current: {
      background: background.secondary,
      '&& > :first-child': {
        background: background.secondary,
        boxShadow: `inset 3px 0 0 ${theme.colors.primary.main}`,
      },
    },
    none: { color: text.secondary, fontStyle: 'italic', fontSize: theme.typography.bodySmall.fontSize },
    ...verdicts(theme),
  };
});
