import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { HistoryPoint } from '../../client';
import { Curve, scaleFrom, type Scale, type Tick } from '../../components/Curve';
import { milliseconds, number } from '../../lib/format';
import { verdicts } from '../../lib/styles';
import type { Figure } from './figures';
import { changesOf, highest, linesOf, SPAN, type Value } from './history';
import { LargeValue } from './LargeValue';
import { clock } from './model';
import type { Reference } from './references';

interface FigureViewProps {
  figure: Figure;
  /** What the name stands for. */
  meaning: string;
  /** Which curve belongs to it. */
  value: Value;
  references: Reference[];
  points: HistoryPoint[];
  /** The load generator's clock when it was last heard of, in milliseconds since 1970; undefined until it is known. */
  now?: number;
  /** Whether that is the present moment. */
  isLive: boolean;
  /** The objective in seconds, where the figure has one. */
  slo?: number;
}

/** One large figure over the last 60 s, what is recorded of it, and its last ten minutes: the curve ends at the figure. */
export function FigureView(props: FigureViewProps) {
  const styles = useStyles2(getStyles);
  const { figure, meaning, references, now, isLive } = props;
  const { name } = figure;
  return (
    <section className={styles.part} aria-label={name}>
      <h2>
        {name} <small>{meaning}, figure and curve over 60 s</small>
      </h2>
      <LargeValue figure={figure} isLive={isLive} testId={name} className={styles.value} />
      <ul className={styles.references} aria-label={`${name} of the baseline`}>
        {references.map((reference) => (
          <ReferenceLine key={reference.of} reference={reference} />
        ))}
      </ul>
      {now !== undefined && (
        <div className={styles.curve}>
          <Course {...props} now={now} />
        </div>
      )}
    </section>
  );
}

function ReferenceLine({ reference: { of, text, difference } }: { reference: Reference }) {
  const styles = useStyles2(getStyles);
  return (
    <li>
      <span className={styles.of}>{of}</span> <span>{text}</span>{' '}
      <b className={difference && styles[difference.kind]}>{difference?.text}</b>
    </li>
  );
}

/** How a value is written on its axis. */
export const writers: Record<Value, (value: number) => string> = {
  ttft_p95: (value) => milliseconds(value, 0),
  output_tokens_per_second: (value) => number(value),
};

function Course({ figure: { name }, value, points, now, isLive, slo }: FigureViewProps & { now: number }) {
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
  const { better, worse, same } = verdicts(theme);
  const { text, background } = theme.colors;
  return {
    part: css({
      display: 'flex',
      flexDirection: 'column',
      flex: '1 1 34em',
      minWidth: 0,
      minHeight: 0,
      padding: '0.6em 1.4em',
      borderRadius: '0.5em',
      background: background.primary,
      fontVariantNumeric: 'tabular-nums',
      '& h2': { fontSize: '2em', lineHeight: 1.2, margin: 0 },
      '& h2 small': { fontSize: '0.75em', fontWeight: 'normal', color: text.secondary },
    }),
    value: css({ fontSize: '7.5em', '@media (max-width: 600px)': { fontSize: '4.5em' } }),
    references: css({
      display: 'grid',
      gridTemplateColumns: 'repeat(auto-fit, minmax(min(15em, 100%), 1fr))',
      gap: '0 1.5em',
      listStyle: 'none',
      margin: 0,
      padding: 0,
      fontSize: '1.35em',
      lineHeight: 1.3,
      minHeight: '2.6em',
      '& b': { display: 'block', fontWeight: theme.typography.fontWeightMedium },
    }),
    of: css({ color: text.secondary }),
    curve: css({
      flex: '1 1 0',
      minHeight: '7.5em',
      fontSize: '1.3em',
      padding: '1.6em 6em 1.7em 4.6em',
    }),
    better: css(better),
    worse: css(worse),
    same: css(same),
  };
};
