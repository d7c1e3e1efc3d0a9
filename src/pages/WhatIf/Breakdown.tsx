import { memo } from 'react';
import { cx } from '@emotion/css';

import type { Mode, SimulationPoint, SimulationResult } from '../../client';
import { DataTable, UNSTACKED } from '../../components/DataTable';
import { milliseconds, seconds } from '../../lib/format';
import { compareLevels, levelsName, levelText, type Level } from '../../lib/level';
import { modeName } from '../../lib/names';
import { COLUMN, stylesOf, WRAP } from '../../lib/styles';

interface BreakdownProps {
  result: SimulationResult;
  /** The modes in the order of the rows. */
  modes: Mode[];
  levels: Level[];
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
      <DataTable
        label="Where a turn’s time goes, as a table"
        caption="Mean times of a turn, simulated"
        stacks
        rows={rows}
        keyOf={({ key }) => key}
        rowClass={({ level }) => cx(level !== undefined && styles.begins)}
        columns={[
          {
            name: levelsName(levels) === 'Rate' ? 'Rate' : 'Conversations',
            className: styles.mode,
            cell: ({ level, mode }) => (
              <>
                {level !== undefined && <b>{levelText(level)}</b>}
                <span>{modeName(mode)}</span>
              </>
            ),
          },
          {
            name: 'Up to the first token',
            className: styles.half,
            isWide: true,
            cell: ({ times }) => <Stack times={times} parts={FIRST} scale={scales.first} write={milliseconds} />,
          },
          {
            name: 'The whole turn',
            className: styles.half,
            isWide: true,
            cell: ({ times }) => <Stack times={times} parts={PARTS} scale={scales.whole} write={seconds} />,
          },
        ]}
      />
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

/** The parts of a turn, in order. */
const PARTS = ['queued', 'prefill', 'decode'] as const;
/** A part of a turn. */
type Part = (typeof PARTS)[number];
/** The mean time of each part, in seconds. */
type Times = Record<Part, number>;

/** Returns the parts of a turn's time at a level under a mode; undefined where they are not computed. */
function timesOf({ points }: SimulationResult, mode: Mode, level: Level): Times | undefined {
  const figures = points.find((point) => point.mode === mode && point.concurrency === level)?.figures;
  const { queued_seconds: queued, prefill_seconds: prefill, decode_seconds: decode } = figures ?? {};
  return queued && prefill && decode ? { queued: queued.mean, prefill: prefill.mean, decode: decode.mean } : undefined;
}

/**
 * Returns the levels on both sides of a crossing: the one at which the first mode leads most in TTFT p95, and the one
 * at which the second does. Where one mode leads at every level, it returns the lowest and the highest one.
 */
export function sidesOf({ points, request: { levels = [] } }: SimulationResult, [a, b]: Mode[]): Level[] {
  const ttft = (mode: Mode, level: Level) =>
    points.find((point: SimulationPoint) => point.mode === mode && point.concurrency === level)?.figures.ttft_p95?.mean;
  const ratios = levels.flatMap((level) => {
    const [first, second] = [ttft(a, level), ttft(b, level)];
    return first && second ? [{ level, ratio: first / second }] : [];
  });
  if (ratios.length === 0) {
    return [];
  }
  const sorted = [...ratios].sort((x, y) => x.ratio - y.ratio);
  const [least, most] = [sorted[0], sorted[sorted.length - 1]];
  const ends = least.ratio < 1 && most.ratio > 1 ? [least, most] : [ratios[0], ratios[ratios.length - 1]];
  return [...new Set(ends.map(({ level }) => level))].sort(compareLevels);
}

const useStyles = stylesOf(({ colors, spacing, typography, visualization }) => ({
  all: { ...COLUMN, gap: spacing(0.5), marginBottom: spacing(1.5) },
  legend: { ...WRAP, gap: spacing(0, 2) },
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
