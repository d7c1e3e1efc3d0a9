import { cx } from '@emotion/css';

import type { ModeState, SweepRequest, TrialDifference, TrialState } from '../../client';
import { number } from '../../lib/format';
import { COLUMN, comparisonColors, PLAIN_LIST, PRINTED, stylesOf, verdicts, WRAP } from '../../lib/styles';
import { modeText } from '../../lib/names';

import { Looks } from './Looks';
import { Ranking } from './Ranking';
import {
  differenceText,
  endText,
  isShare,
  metricName,
  metricValue,
  outcomeWords,
  rangeText,
  tickText,
} from './metrics';

/**
 * The results of a trial: the deciding metric, and the others, each as a difference with its interval. Of more than two
 * arms, they are those of the best one and the runner-up, below the ranking.
 */
export function Differences({ trial, request }: { trial: TrialState; request: SweepRequest }) {
  const styles = useStyles();
  const { primary, others, boundaries, blocks, failures, final, ranking } = trial;
  const [a, b] = ranking ? [ranking.places[1]?.mode, ranking.places[0]?.mode] : (request.modes ?? []);
  if (!primary || !a || !b) {
    const least = trial.first_look ?? 2;
    return (
      <p className={styles.note}>
        The first difference appears after block {number(least)} of spans; {number(blocks)} of {number(least)} done.
      </p>
    );
  }
  const smallest = request.smallest ?? 0;
  const reach = reachOf([primary, ...others], smallest);
  const row = (one: TrialDifference) => (
    <Row
      key={one.metric}
      difference={one}
      isSucceeded={trial.succeeded}
      a={a}
      b={b}
      boundaries={one === primary ? boundaries : undefined}
      reach={reach}
    />
  );
  return (
    <div className={styles.all}>
      {ranking && (
        <Ranking ranking={ranking} metric={primary.metric} smallest={smallest} isOver={trial.verdict !== 'running'} />
      )}
      <h3>{ranking ? 'The best arm and the runner-up' : 'Primary metric'}</h3>
      <ul className={styles.list} aria-label="Primary metric">
        {row(primary)}
      </ul>
      <p className={styles.note}>
        {modeText(b)} compared with {modeText(a)} after {baseText(trial)} of spans; left of the center it is lower,
        right of it higher. The bar is the 95 % interval, valid over all looks; the gray area is within the smallest
        difference of interest, {number(100 * smallest, 1)} {isShare(primary.metric) ? 'points' : '%'}.
        {final && ` Corrected for the early stop: ${differenceText(primary.metric, final.difference)}.`}
      </p>
      {failures && (
        <p className={styles.note}>
          Failed turns: {failedText(failures.a)} under {modeText(a)}, {failedText(failures.b)} under {modeText(b)}
          {failures.interval && ` (${failures.interval.map(endText).join(' to ')} points)`}.
        </p>
      )}
      {(trial.guards ?? [])
        .filter(({ outcome }) => outcome === 'unlike')
        .map((guard) => (
          <p key={guard.metric} className={styles.note}>
            {metricName(guard.metric)}: {valuesText(guard, a, b)}. They certainly differ, so neither arm is better.
          </p>
        ))}
      {(trial.worse ?? []).map((loss) => (
        <p key={loss.metric} className={styles.note}>
          {metricName(loss.metric)}: {valuesText(loss, a, b)}. The better arm is certainly worse here, so this is a
          trade-off.
        </p>
      ))}
      <Looks trial={trial} mode={b} />
      {others.length > 0 && (
        <>
          <h3>Other metrics</h3>
          <ul className={styles.list} aria-label="Other metrics">
            {others.map(row)}
          </ul>
          {others.length > 1 && <p className={styles.note}>These conclusions hold for all of these metrics jointly.</p>}
        </>
      )}
    </div>
  );
}

/** The size of the sample of a trial's figures: "3 blocks"; pairs in trials of earlier versions. */
function baseText({ method, blocks, pairs = 0 }: TrialState): string {
  const [count, word] = method === 'pairs' ? [pairs, 'pair'] : [blocks, 'block'];
  return `${number(count)} ${word}${count === 1 ? '' : 's'}`;
}

/** The values of both arms: "Round-robin 700 ms, KV-aware 400 ms". */
function valuesText(of: TrialDifference, a: ModeState, b: ModeState): string {
  return `${modeText(a)} ${metricValue(of.metric, of.a)}, ${modeText(b)} ${metricValue(of.metric, of.b)}`;
}

function failedText({ failed, ended }: { failed: number; ended: number }): string {
  return `${number(failed)} of ${number(ended)}`;
}

/** Returns the largest absolute value to draw, with a margin. Beyond 100 %, an interval is cut. */
function reachOf(all: TrialDifference[], smallest: number): number {
  const furthest = Math.max(2 * smallest, ...all.flatMap(({ interval = [] }) => interval.map(Math.abs)));
  return Math.min(1, 1.1 * (Number.isFinite(furthest) ? furthest : 1));
}

interface RowProps {
  difference: TrialDifference;
  /** Whether the mean TTFT is that of successful turns. */
  isSucceeded?: boolean;
  a: ModeState;
  b: ModeState;
  /** The bounds of irrelevant differences; undefined for a metric that does not decide. */
  boundaries?: TrialState['boundaries'];
  reach: number;
}

/** One metric: both values, the difference in words, and its interval around zero. */
function Row({ difference, isSucceeded, a, b, boundaries, reach }: RowProps) {
  const styles = useStyles();
  const { metric, difference: estimate, interval } = difference;
  return (
    <li className={styles.row}>
      <div className={styles.name}>
        <b>
          {metricName(metric)}
          {isSucceeded && metric === 'ttft_mean' && ', successful turns only'}
        </b>
        <small>{valuesText(difference, a, b)}</small>
      </div>
      <div className={styles.words}>
        <b>{differenceText(metric, estimate)}</b>
        {interval && <small>({rangeText(metric, interval)})</small>}
        <span className={styles[`${toneOf(difference.outcome)}Words`]}>
          {outcomeWords(difference.outcome, modeText(a), modeText(b))}
        </span>
      </div>
      <Plot
        metric={metric}
        estimate={estimate}
        interval={interval}
        boundaries={boundaries}
        reach={reach}
        tone={toneOf(difference.outcome)}
      />
    </li>
  );
}

interface PlotProps extends Pick<TrialDifference, 'metric' | 'interval'>, Pick<RowProps, 'boundaries' | 'reach'> {
  estimate: number;
  tone: Tone;
}

/** An interval on its scale, with its ends in words. */
function Plot({ metric, estimate, interval, boundaries, reach, tone }: PlotProps) {
  const styles = useStyles();
  const at = (value: number) => ({ left: place(value, reach) });
  const between = ([low, high]: [number, number]) => ({
    left: place(low, reach),
    right: `calc(100% - ${place(high, reach)})`,
  });
  const [low, high] = interval ?? [0, 0];
  return (
    <div className={styles.plot} aria-hidden="true">
      <div className={styles.field}>
        {ticksOf(reach).map((tick) => (
          <span key={tick} className={cx(styles.tick, tick === 0 && styles.zero)} style={at(tick)}>
            <small>{tickText(metric, tick)}</small>
          </span>
        ))}
        {boundaries && <span className={styles.smallest} style={between(boundaries)} />}
        {interval && (
          <>
            <span className={cx(styles.bar, styles[tone])} style={between(interval)} />
            {low >= -reach && (
              <small className={cx(styles.end, styles.low)} style={at(low)}>
                {endText(low)}
              </small>
            )}
            {high <= reach && (
              <small className={styles.end} style={at(high)}>
                {endText(high)}
              </small>
            )}
          </>
        )}
        <span className={cx(styles.dot, styles[tone])} style={at(estimate)} />
      </div>
    </div>
  );
}

/** Returns round positions on both sides of 0, two each where they fit. */
function ticksOf(reach: number): number[] {
  const power = 10 ** Math.floor(Math.log10(reach / 2));
  const step = power * ([5, 2, 1].find((s) => s * power <= reach / 2) ?? 1);
  const n = Math.floor(reach / step + 1e-9);
  const every = n >= 4 ? 2 : 1;
  return [-2, -1, 0, 1, 2].map((k) => k * every * step).filter((tick) => Math.abs(tick) <= reach * (1 + 1e-9));
}

function place(value: number, reach: number): string {
  return `${50 + 50 * Math.max(-1, Math.min(1, value / reach))}%`;
}

type Tone = 'better' | 'worse' | 'same';

function toneOf(outcome: TrialDifference['outcome']): Tone {
  return outcome === 'b_better' ? 'better' : outcome === 'a_better' ? 'worse' : 'same';
}

const useStyles = stylesOf((theme) => {
  const words = verdicts(theme);
  const { better, worse } = comparisonColors(theme);
  return {
    better: { color: better },
    worse: { color: worse },
    same: words.same,
    betterWords: words.better,
    worseWords: words.worse,
    sameWords: words.same,
    all: {
      ...COLUMN,
      gap: theme.spacing(1),
      '& h3': { ...theme.typography.h5, margin: theme.spacing(1, 0, 0) },
    },
    list: { ...COLUMN, gap: theme.spacing(1), ...PLAIN_LIST },
    row: {
      display: 'grid',
      gridTemplateColumns: 'repeat(auto-fit, minmax(min(280px, 100%), 1fr))',
      alignItems: 'center',
      gap: theme.spacing(0.5, 2),
      breakInside: 'avoid',
      fontVariantNumeric: 'tabular-nums',
      '& b': { fontWeight: theme.typography.fontWeightMedium },
      '& small': { color: theme.colors.text.secondary },
    },
    name: { ...COLUMN, minWidth: 0 },
    words: { ...WRAP, alignItems: 'baseline', gap: theme.spacing(0, 1) },
    plot: { minWidth: 0, padding: theme.spacing(0, 3) },
    field: {
      position: 'relative',
      height: 56,
      '& > *': { position: 'absolute' },
      '& small': { fontSize: theme.typography.bodySmall.fontSize, lineHeight: 1.2, whiteSpace: 'nowrap' },
    },
    // The ends are above their interval, the scale below it.
    tick: {
      top: 16,
      bottom: 16,
      borderLeft: `1px solid ${theme.colors.border.weak}`,
      '& small': { position: 'absolute', top: '100%', transform: 'translateX(-50%)' },
    },
    end: { top: 0, '&&': { color: theme.colors.text.primary } },
    low: { transform: 'translateX(-100%)' },
    smallest: { top: 16, bottom: 16, background: theme.colors.action.selected, ...PRINTED },
    zero: { borderLeftColor: theme.colors.text.secondary },
    bar: {
      top: '50%',
      height: 6,
      marginTop: -3,
      minWidth: 2,
      background: 'currentColor',
      opacity: 0.6,
      ...PRINTED,
    },
    dot: {
      top: '50%',
      width: 12,
      height: 12,
      margin: '-6px 0 0 -6px',
      borderRadius: theme.shape.radius.circle,
      background: 'currentColor',
      ...PRINTED,
    },
    note: {
      ...theme.typography.bodySmall,
      margin: 0,
      maxWidth: '110ch',
      color: theme.colors.text.secondary,
      textWrap: 'pretty',
    },
  };
});
