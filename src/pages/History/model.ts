import type { BaselineRow, RunChange, RunHistory, RunRecord, RunSeries } from '../../client';
import type { ChartLine, Drawing } from '../../components/Chart';
import { isShare, metricValue } from '../../components/SweepResult';
import { meanTTFT, timeFigure, valueFigure, type RowFigure } from '../../lib/figures';
import { number, relative, signed } from '../../lib/format';
import { levelWords } from '../../lib/level';
import { modeKey, modeName, modeText } from '../../lib/names';
import { clock, dateTime, day } from '../../lib/time';

/** The figures that the load generator searches for changes. */
export const runFigures: RowFigure[] = [
  meanTTFT,
  timeFigure('ttft', 'p50'),
  timeFigure('ttft', 'p95'),
  timeFigure('tpot', 'p95'),
  timeFigure('latency', 'p95'),
  valueFigure('output_tokens_per_second'),
  valueFigure('kv_hit_ratio'),
];

/** The signs of runs. */
export const SIGNS = { accepted: '✓', failed: '✕' };

/** A run with its row in a series. */
export interface SeriesRun {
  run: RunRecord;
  row: BaselineRow;
}

/** A series with its runs, oldest first. */
export interface Series extends Omit<RunSeries, 'runs'> {
  key: string;
  title: string;
  runs: SeriesRun[];
}

/** What is in view. */
export interface ViewProps {
  series: Series;
  figure: RowFigure;
}

/** Returns the series of a history, that of the newest run first. */
export function seriesOf({ runs, series }: RunHistory): Series[] {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const all = series.map((one): Series => {
    const mode = modeText(one);
    return {
      ...one,
      key: `${one.name} ${one.concurrency} ${modeKey(one)} ${one.runs[0]}`, // those of other traffic have other runs
      title: `${one.name}: ${levelWords(one.concurrency)}${mode === modeName('unknown') ? '' : `, ${mode}`}`,
      runs: one.runs.flatMap((id) => {
        const run = byId.get(id);
        const row = run?.result.rows.find((r) => r.concurrency === one.concurrency && modeKey(r) === modeKey(one));
        return run && row ? [{ run, row }] : [];
      }),
    };
  });
  const newest = ({ runs: own }: Series) => Date.parse(own[own.length - 1].run.ended);
  return all.filter(({ runs: own }) => own.length > 0).sort((a, b) => newest(b) - newest(a));
}

/** Returns the changes of a figure by the run that is the first one after each. */
export function changesOf({ changes }: Series, figure: RowFigure): Map<string, RunChange> {
  return new Map(changes.filter((change) => change.figure === figure.key).map((change) => [change.run, change]));
}

/** The direction of a change, and the name of its style. */
export function directionOf({ better }: RunChange): 'better' | 'worse' {
  return better ? 'better' : 'worse';
}

/** Describes a change: "+8.0 %, worse", "−4.0 points, worse", "2.3 times as long, worse". */
export function changeText(change: RunChange): string {
  const { figure, before, after } = change;
  const long = runFigures.some(({ key, isMoreBetter }) => key === figure && isMoreBetter) ? 'much' : 'long';
  const size = isShare(figure)
    ? `${signed(100 * (after - before))} points`
    : relative(100 * (after / before - 1), long);
  return `${size}, ${directionOf(change)}`;
}

/** Describes the values of a change: "from 120 ms to 130 ms". */
export function valuesText({ figure, before, after }: RunChange): string {
  return `from ${metricValue(figure, before)} to ${metricValue(figure, after)}`;
}

/** The number of runs of a series: "20 runs". */
export function countText({ runs }: Series): string {
  return `${number(runs.length)} ${runs.length === 1 ? 'run' : 'runs'}`;
}

/** Formats the labels of a run: "commit=3f2c1a0". */
export function labelsText({ labels = {} }: RunRecord): string {
  const all = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return all.join(', ');
}

/** Describes a run: "12 Dec 2026, 02:10; run mx44; accepted; commit=3f2c1a0". */
function runText(run: RunRecord): string {
  const words = [dateTime(run.ended, 'minute'), `run ${run.id}`, run.accepted && 'accepted', run.failed && 'failed'];
  return [...words, labelsText(run)].filter(Boolean).join('; ');
}

/** Draws a figure over the runs of a series, with its mean between changes. */
export function drawingOf(series: Series, figure: RowFigure): Drawing {
  const { runs, mode: tone } = series;
  const { format, value, interval } = figure;
  const places = runs.map((_, i) => i);
  const changes = changesOf(series, figure);
  const changed = runs.flatMap(({ run }, at) => {
    const change = changes.get(run.id);
    return change ? [{ at, change }] : [];
  });
  const means = changed.map(({ at, change }, i) => ({ from: at, to: changed[i + 1]?.at, mean: change.after }));
  if (changed.length > 0) {
    means.unshift({ from: 0, to: changed[0].at, mean: changed[0].change.before });
  }
  const days = new Set(runs.map(({ run }) => day(run.ended)));
  return {
    x: {
      levels: places,
      words: runs.map(({ run }) => (days.size > 1 ? day(run.ended) : clock(run.ended, 'minute'))),
      readings: runs.map(({ run }) => runText(run)),
    },
    lines: [
      { key: 'runs', name: figure.name, tone, dots: true, points: runs.map(({ row }, i) => [i, value(row)]) },
      ...means.map(({ from, to = runs.length, mean }): ChartLine => ({
        key: `mean ${from}`,
        name: 'Mean between changes',
        tone: 'unknown',
        look: 'dashed',
        points: places.map((place) => [place, place >= from && place < to ? mean : undefined]),
      })),
    ],
    bands: [
      {
        of: 'runs',
        tone,
        points: runs.flatMap(({ row }, i): Array<[number, number, number]> => {
          const around = interval(row);
          return around ? [[i, Math.max(0, around[0]), around[1]]] : [];
        }),
      },
    ],
    marks: changed.map(({ at, change }) => ({
      at: at - 0.5,
      text: `${change.better ? '▲' : '▼'} ${changeText(change)}`,
    })),
    signs: runs.flatMap(({ run, row }, i) => {
      const low = interval(row)?.[0] ?? value(row);
      const text = (run.failed ? SIGNS.failed : '') + (run.accepted ? SIGNS.accepted : '');
      return text && low !== undefined ? [{ at: [i, low], text }] : [];
    }),
    floor: floorOf(series, figure),
    format,
  };
}

/** Returns where the axis of a figure begins: near the least value, where all are alike, else at 0. */
function floorOf({ runs }: Series, { value, interval }: RowFigure): number {
  const all = runs.flatMap(({ row }) => interval(row) ?? value(row) ?? []);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return low > high / 2 ? Math.max(0, low - (high - low) / 4) : 0;
}

/** Describes a drawing: the number of runs, the last one, and each change. */
export function drawingText(series: Series, figure: RowFigure): string {
  const { run, row } = series.runs[series.runs.length - 1];
  const value = figure.value(row);
  const last = value === undefined ? 'not known' : metricValue(figure.key, value);
  return [
    `, ${countText(series)}; last ${last}, ${runText(run)}`,
    ...[...changesOf(series, figure).values()].map((change) => `; ${changeText(change)} since run ${change.run}`),
  ].join('');
}
