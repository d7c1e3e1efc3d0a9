import React from 'react';
import { css, cx } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { HistoryPoint } from '../../client';
import { SLOMark } from '../../components/Comparison';
import { Curve, scaleFrom, type Scale, type Tick } from '../../components/Curve';
import { DASH, milliseconds, number } from '../../lib/format';
import { verdicts } from '../../lib/styles';
import { changesOf, highest, linesOf, SPAN, type Value } from './history';
import { clock, type Figure, type Reference } from './model';

interface FigureViewProps {
  figure: Figure;
  points: HistoryPoint[];
  /** The load generator's clock when it was last heard of, in milliseconds since 1970; undefined until it is known. */
  now?: number;
  /** Whether that is the present moment. */
  isLive: boolean;
  /** The objective in seconds, where the figure has one. */
  slo?: number;
}

/** One large figure, what it is compared with, and its last ten minutes. */
export function FigureView({ figure, points, now, isLive, slo }: FigureViewProps) {
  const styles = useStyles2(getStyles);
  const { name, text, unit, tag, slo: level, references } = figure;
  return (
    <section className={styles.part} aria-label={name}>
      <h2>
        {name} <small>this step; curve: last 60 s</small>
      </h2>
      <div className={styles.figure}>
        <div
          className={cx(styles.value, level && styles[level], (text === DASH || tag === 'settling') && styles.absent)}
          data-testid={name}
        >
          {text}
          {unit && text !== DASH && <small> {unit}</small>} {level && <SLOMark level={level} />}
        </div>
        {tag && <div className={styles.tag}>{tag}</div>}
      </div>
      <ul className={styles.references} aria-label={`${name} of the baseline`}>
        {references.map((reference) => (
          <ReferenceLine key={reference.of} reference={reference} />
        ))}
      </ul>
      {now !== undefined && (
        <div className={styles.curve}>
          <Course figure={figure} points={points} now={now} isLive={isLive} slo={slo} />
        </div>
      )}
    </section>
  );
}

function ReferenceLine({ reference: { of, text, word, difference } }: { reference: Reference }) {
  const styles = useStyles2(getStyles);
  return (
    <li>
      <span className={styles.of}>
        {of} {word}
      </span>
      <span>{text}</span>
      <b className={difference && styles[difference.kind]}>
        {difference?.text} {difference?.verdict}
      </b>
    </li>
  );
}

/** How a value is written on its axis. */
export const writers: Record<Value, (value: number) => string> = {
  ttft_p95: (value) => milliseconds(value, 0),
  output_tokens_per_second: (value) => number(value),
};

function Course({ figure: { name, value }, points, now, isLive, slo }: FigureViewProps & { now: number }) {
  const write = writers[value];
  const limit = slo === undefined ? undefined : { at: slo, text: `SLO ${write(slo)}` };
  const top = highest(points, value);
  const known = Number.isFinite(top);
  const marks = changesOf(points);
  return (
    <Curve
      label={[
        `${name} of the last ten minutes`,
        known ? `, at most ${write(top)}` : ', not measured',
        ...marks.map(({ at, text }) => `; ${clock(at)} ${text}`),
      ].join('')}
      x={timeScale(now, points[0] && Date.parse(points[0].time), isLive)}
      // Room above for a value at the very top, and for the objective where it is near.
      y={scaleFrom(Math.max(1.05 * top, limit && known ? 1.15 * limit.at : (limit?.at ?? 0)), 3, write)}
      lines={linesOf(points, value)}
      marks={marks}
      limit={limit}
    />
  );
}

/** How late the first point may be before the axis says since when there are any, in milliseconds. */
const LATE = 5000;

/** How near the end of the axis its other words may stand beside the last, as a share of it. */
const ROOM = 0.4;

/** How near the end there is no room for them at all. */
const EDGE = 0.1;

/** Always ten minutes, and a word where they are not full yet. What was heard last is not now. */
export function timeScale(now: number, first: number | undefined, isLive: boolean): Scale {
  const [min, max] = [now - SPAN, now];
  const end: Tick = { at: max, text: isLive ? 'now' : clock(max, 'minute') };
  if (first === undefined || first - min < LATE) {
    return { min, max, ticks: [end, { at: min, text: isLive ? '10 min ago' : clock(min, 'minute') }] };
  }
  const since: Tick = { at: first, text: `since ${clock(first, 'minute')}` };
  const room = (max - first) / SPAN;
  return { min, max, ticks: [...(room < ROOM && room > EDGE ? [] : [end]), ...(room > EDGE ? [since] : [])] };
}

const getStyles = (theme: GrafanaTheme2) => {
  const { met, near, missed, better, worse, same } = verdicts(theme);
  const { text, background } = theme.colors;
  return {
    part: css({
      display: 'flex',
      flexDirection: 'column',
      flex: '1 1 34em',
      minWidth: 0,
      minHeight: 0,
      padding: '1em 1.4em 0.8em',
      borderRadius: '0.5em',
      background: background.primary,
      fontVariantNumeric: 'tabular-nums',
      '& h2': { fontSize: '1.7em', lineHeight: 1.2, margin: 0, color: text.secondary },
      '& h2 small': { fontSize: '0.55em', fontWeight: 'normal' },
    }),
    figure: css({ display: 'flex', flexWrap: 'wrap', alignItems: 'baseline', gap: '0 1em' }),
    value: css({
      fontSize: '8.5em',
      lineHeight: 1.05,
      fontWeight: theme.typography.fontWeightBold,
      whiteSpace: 'nowrap',
      '& small': { fontSize: '0.45em' },
      '@media (max-width: 600px)': { fontSize: '4.5em' },
    }),
    absent: css({ '&&': { color: text.secondary, fontWeight: theme.typography.fontWeightRegular } }),
    tag: css({ fontSize: '1.7em', fontStyle: 'italic', color: text.secondary }),
    references: css({
      listStyle: 'none',
      margin: 0,
      padding: 0,
      fontSize: '1.7em',
      lineHeight: 1.3,
      minHeight: '2.6em',
      '& li': { display: 'flex', flexWrap: 'wrap', gap: '0 0.7em' },
      '& b': { fontWeight: theme.typography.fontWeightMedium },
    }),
    of: css({ color: text.secondary }),
    curve: css({
      flex: '1 1 0',
      minHeight: '9em',
      fontSize: '1.25em',
      padding: '1.6em 6em 1.7em 4.6em',
    }),
    met: css(met),
    near: css(near),
    missed: css(missed),
    better: css(better),
    worse: css(worse),
    same: css(same),
  };
};
