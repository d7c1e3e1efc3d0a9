import { memo } from 'react';
import { cx } from '@emotion/css';

import type { Mode, SimulationResult } from '../../client';
import { DataTable, UNSTACKED } from '../../components/DataTable';
import { milliseconds, number, seconds } from '../../lib/format';
import { modeName } from '../../lib/names';
import { stylesOf } from '../../lib/styles';
import { PARTS, timesOf, type Part, type Times } from './times';

interface BreakdownProps {
  result: SimulationResult;
  /** The modes in the order of the rows. */
  modes: Mode[];
  levels: number[];
}

const names: Record<Part, string> = { queued: 'Queue', prefill: 'Prefill', decode: 'Decode' };

const FIRST: Part[] = ['queued', 'prefill'];

/**
 * The parts of a turn's time in each mode: the whole turn, and beside it, on its own scale, the time to the first
 * token, which would be too short to see in the whole.
 */
export const Breakdown = memo(function Breakdown({ result, modes, levels }: BreakdownProps) {
  const styles = useStyles();
  const rows = levels.flatMap((level) =>
    modes.flatMap((mode, i) => {
      const times = timesOf(result, mode, level);
      return times ? [{ level: i === 0 ? level : undefined, mode, times, key: `${level} ${mode}` }] : [];
    })
  );
  if (rows.length === 0) {
    return null;
  }
  const sum = (times: Times, parts: readonly Part[]) => parts.reduce((total, part) => total + times[part], 0);
  const longest = (parts: readonly Part[]) => Math.max(...rows.map(({ times }) => sum(times, parts)));
  const scales = { first: longest(FIRST), whole: longest(PARTS) };
  return (
    <div className={styles.all}>
      <div className={styles.legend} aria-hidden="true">
        {PARTS.map((part) => (
          <span key={part}>
            <span className={cx(styles.sample, styles[part])} /> {names[part]}
          </span>
        ))}
      </div>
      <DataTable label="Where a turn’s time goes, as a table" caption="Mean times of a turn, simulated" stacks>
        <thead>
          <tr>
            <th scope="col">Conversations</th>
            <th scope="col">Up to the first token</th>
            <th scope="col">The whole turn</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ key, level, mode, times }) => (
            <tr key={key} className={cx(level !== undefined && styles.begins)}>
              <th scope="row" className={styles.mode}>
                {level !== undefined && <b>{number(level)}</b>}
                <span>{modeName(mode)}</span>
              </th>
              <td data-column="Up to the first token" data-wide className={styles.half}>
                <Stack times={times} parts={FIRST} scale={scales.first} write={milliseconds} />
              </td>
              <td data-column="The whole turn" data-wide className={styles.half}>
                <Stack times={times} parts={PARTS} scale={scales.whole} write={seconds} />
              </td>
            </tr>
          ))}
        </tbody>
      </DataTable>
    </div>
  );
});

interface StackProps {
  times: Times;
  parts: readonly Part[];
  /** The time that fills the width. */
  scale: number;
  write(time: number): string;
}

/** The parts as one bar, with their figures below. */
function Stack({ times, parts, scale, write }: StackProps) {
  const styles = useStyles();
  const total = parts.reduce((sum, part) => sum + times[part], 0);
  return (
    <div className={styles.stack}>
      <span className={styles.track} aria-hidden="true">
        {parts.map((part) => (
          <span key={part} className={styles[part]} style={{ width: `${(100 * times[part]) / scale}%` }} />
        ))}
      </span>
      <b>{write(total)}</b>
      <small>{parts.map((part) => `${names[part].toLowerCase()} ${write(times[part])}`).join(' · ')}</small>
    </div>
  );
}

const useStyles = stylesOf(({ colors, spacing, typography, visualization }) => ({
  all: { display: 'flex', flexDirection: 'column', gap: spacing(0.5), marginBottom: spacing(1.5) },
  legend: { display: 'flex', flexWrap: 'wrap', gap: spacing(0, 2) },
  sample: { display: 'inline-block', width: 14, height: 14, borderRadius: 2, verticalAlign: '-2px' },
  begins: { '&& > *': { paddingTop: spacing(1.5) } },
  mode: { whiteSpace: 'nowrap', '& > b': { display: 'block', fontWeight: typography.fontWeightBold } },
  half: { [UNSTACKED]: { width: '40%' } },
  stack: {
    display: 'grid',
    gridTemplateColumns: 'minmax(0, 1fr) 5.5em',
    alignItems: 'center',
    gap: spacing(0, 1),
    '& > b': { fontWeight: typography.fontWeightMedium },
    '& > small': { gridColumn: '1 / -1' },
  },
  track: { display: 'flex', height: 18, borderRadius: 2, overflow: 'hidden' },
  queued: { background: visualization.getColorByName('semi-dark-purple') },
  prefill: { background: visualization.getColorByName('light-purple') },
  decode: { background: colors.border.strong },
}));
