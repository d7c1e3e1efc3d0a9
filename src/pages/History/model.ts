import type { BaselineRow, RunChange, RunHistory, RunRecord, RunSeries } from '../../client';
import type { ChartLine, Drawing } from '../../components/Chart';
import { isShare, metricValue } from '../../components/SweepResult';
import { meanTTFT, timeFigure, valueFigure, type RowFigure } from '../../lib/figures';
import { DASH, number, signed } from '../../lib/format';
import { levelWords } from '../../lib/level';
import { modeKey, modeText } from '../../lib/names';
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

/** Returns the series of a history, that of the newest run first. */
export function seriesOf({ runs, series }: RunHistory): Series[] {
  const byId = new Map(runs.map((run) => [run.id, run]));
  const rowOf = (one: RunSeries, { result }: RunRecord) =>
    result.rows.find((row) => row.concurrency === one.concurrency && modeKey(row) === modeKey(one));
  const all = series.map((one): Series => ({
    ...one,
    key: `${one.name} ${one.concurrency} ${modeKey(one)} ${one.runs[0]}`, // another workload or kind begins another one
    title: [`${one.name}: ${levelWords(one.concurrency)}`, ...(isNamed(one) ? [modeText(one)] : [])].join(', '),
    runs: one.runs.flatMap((id) => {
      const run = byId.get(id);
      const row = run && rowOf(one, run);
      return row ? [{ run, row }] : [];
    }),
  }));
  const newest = ({ runs: own }: Series) => Date.parse(own[own.length - 1].run.ended);
  return all.filter(({ runs: own }) => own.length > 0).sort((a, b) => newest(b) - newest(a));
}

/** Whether a series has an arm or a mode to name. */
function isNamed({ arm, mode, speculation }: RunSeries): boolean {
  return arm !== undefined || mode !== 'unknown' || (speculation !== 'off' && speculation !== 'not_recorded');
}

/** Returns the changes of a figure by the run that is the first one after each. */
export function changesOf({ changes }: Series, figure: RowFigure): Map<string, RunChange> {
  return new Map(changes.filter((change) => change.figure === figure.key).map((change) => [change.run, change]));
}

/** Formats the size of a change: "+8.0 %", "−4.0 points", "2.3 times as long". */
export function sizeText({ figure, before, after }: RunChange): string {
  if (isShare(figure)) {
    return `${signed(100 * (after - before))} points`;
  }
  const ratio = after / before;
  const isRate = runFigures.some(({ key, isMoreBetter }) => key === figure && isMoreBetter);
  return ratio > 2 ? `${number(ratio, 1)} times as ${isRate ? 'much' : 'long'}` : `${signed(100 * (ratio - 1))} %`;
}

/** Describes the values of a change: "from 120 ms to 130 ms". */
export function valuesText({ figure, before, after }: RunChange): string {
  return `from ${metricValue(figure, before)} to ${metricValue(figure, after)}`;
}

/** The direction of a change, and the name of its style. */
export function directionOf({ better }: RunChange): 'better' | 'worse' {
  return better ? 'better' : 'worse';
}

/** The number of runs of a series: "20 runs". */
export function countText({ runs }: Series): string {
  return `${number(runs.length)} ${runs.length === 1 ? 'run' : 'runs'}`;
}

/** Formats the labels of a run: "commit=3f2c1a0". */
export function labelsText({ labels = {} }: RunRecord): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');
}

/** Describes a run: "12 Dec 2026, 02:10; run mx44; accepted; commit=3f2c1a0". */
export function runText(run: RunRecord): string {
  const words = [dateTime(run.ended, 'minute'), `run ${run.id}`, run.accepted && 'accepted', run.failed && 'failed'];
  return [...words, labelsText(run)].filter(Boolean).join('; ');
}

/** Draws a figure over the runs of a series, with its mean between changes. */
export function drawingOf(series: Series, figure: RowFigure): Drawing {
  const { runs, mode: tone } = series;
  const places = runs.map((_, i) => i);
  const changes = changesOf(series, figure);
  const changed = places.filter((i) => changes.has(runs[i].run.id));
  const means = changed.flatMap((at, i): ChartLine[] => {
    const { before, after } = changes.get(runs[at].run.id)!;
    const mean = (from: number, to: number, value: number): ChartLine => ({
      key: `mean ${from}`,
      name: 'Mean between changes',
      tone: 'unknown',
      look: 'dashed',
      points: places.map((place) => [place, place >= from && place < to ? value : undefined]),
    });
    return [...(i === 0 ? [mean(0, at, before)] : []), mean(at, changed[i + 1] ?? runs.length, after)];
  });
  const days = new Set(runs.map(({ run }) => day(run.ended)));
  return {
    x: {
      levels: places,
      words: runs.map(({ run }) => (days.size > 1 ? day(run.ended) : clock(run.ended, 'minute'))),
      readings: runs.map(({ run }) => runText(run)),
    },
    lines: [
      ...means,
      { key: 'runs', name: figure.name, tone, dots: true, points: runs.map(({ row }, i) => [i, figure.value(row)]) },
    ],
    bands: [
      {
        of: 'runs',
        tone,
        points: runs.flatMap(({ row }, i) => {
          const around = figure.interval(row);
          return around ? [[i, Math.max(0, around[0]), around[1]] as [number, number, number]] : [];
        }),
      },
    ],
    marks: changed.map((at) => {
      const change = changes.get(runs[at].run.id)!;
      return { at: at - 0.5, text: `${change.better ? '▲' : '▼'} ${sizeText(change)}, ${directionOf(change)}` };
    }),
    signs: runs.flatMap(({ run, row }, i) => {
      const low = figure.interval(row)?.[0] ?? figure.value(row);
      const text = (run.failed ? FAILED : '') + (run.accepted ? ACCEPTED : '');
      return text && low !== undefined ? [{ at: [i, low] as [number, number], text }] : [];
    }),
    floor: floorOf(series, figure),
    format: figure.format,
  };
}

/** Returns where the axis of a figure begins: near the least value, where all are alike, else at 0. */
function floorOf({ runs }: Series, { value, interval }: RowFigure): number {
  const all = runs.flatMap(({ row }) => interval(row) ?? value(row) ?? []);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  return low > high / 2 ? Math.max(0, low - (high - low) / 4) : 0;
}

/** The signs of runs. */
export const [ACCEPTED, FAILED] = ['✓', '✕'];
export const SIGNS = { [ACCEPTED]: 'accepted', [FAILED]: 'failed' };

/** Describes a drawing: how many runs, the last value, and each change. */
export function drawingText(series: Series, figure: RowFigure): string {
  const { run, row } = series.runs[series.runs.length - 1];
  const value = figure.value(row);
  return [
    `, ${countText(series)}; last ${value === undefined ? DASH : metricValue(figure.key, value)}, ${runText(run)}`,
    ...[...changesOf(series, figure).values()].map(
      (change) => `; ${sizeText(change)}, ${directionOf(change)} since run ${change.run}`
    ),
  ].join('');
}
