import type { Baseline } from '../../client';
import { digits, milliseconds, MS, number, percent } from '../../lib/format';
import type { Level } from '../../lib/level';
import { engineName } from '../../lib/names';
import { sustainedLevel, sustainedNote, sustainedOf } from '../../lib/sustained';
import { figure, prefixed, rate, type Figures, type Routing } from './figures';

type Row = Baseline['rows'][number];
type Value = (row: Row) => number | undefined;

/** The rows of a level that has one under round-robin and one under KV-aware routing. */
interface Pair extends Record<Routing, Row> {
  level: number;
}

/** The least and the greatest value over levels, and the mean. Each level counts once. */
interface Span {
  min: number;
  max: number;
  mean: number;
}

const tokens: Value = (row) => row.output_tokens_per_second;
const requests: Value = (row) => row.requests_per_second;
const latencyMedian: Value = (row) => row.latency.p50;
const latency95: Value = (row) => row.latency.p95;

/** Returns the figures over all recorded levels. Gains include their unfavorable end. */
export function recordedFigures(table: Baseline | undefined): Figures {
  const why = table ? 'not recorded' : 'no recorded table yet';
  const recorded = (value: string | undefined) => figure(value, 'recorded', why);
  const derived = (value: string | undefined) => figure(value, 'derived', why);
  const { model, gpu, engine, workers, tensor_parallel } = table?.deployment ?? {};
  const pairs = pairUp(table?.rows ?? []);
  const levels = pairs.map((pair) => pair.level);
  const worse = pairs.filter((pair) => isWorse(pair, table?.advantages)).map((pair) => pair.level);
  const gain = (value: Value, sign: 1 | -1) =>
    span(pairs.map(({ kv, round_robin }) => ratio(value(kv), value(round_robin), sign)));
  const inBoth = (value: Value) => span(pairs.flatMap(({ kv, round_robin }) => [value(kv), value(round_robin)]));
  const tokensGain = gain(tokens, 1);
  const tpotGain = gain((row) => row.tpot.p50, -1);
  const ttftGain = gain((row) => row.ttft.p95, -1);
  const ttftMedianGain = gain((row) => row.ttft.p50, -1);
  const latencyGain = gain(latency95, -1);
  const output = inBoth((row) => quotient(tokens(row), requests(row)));
  return {
    notes: recorded(table?.notes?.replaceAll('\n', ' ')),
    gpu: recorded(gpu),
    model: recorded(model),
    engine: recorded(engineName(engine)),
    workers: recorded(number(workers)),
    'tensor-parallel': recorded(number(tensor_parallel)),
    levels: recorded(levels.length > 0 ? `${levels[0]}–${levels[levels.length - 1]}` : undefined),
    'levels-count': recorded(table && number(levels.length)),
    'worse-levels': recorded(table && listed(worse)),
    'tokens-gain': derived(percents(tokensGain)),
    'tokens-mean': derived(mean(tokensGain)),
    'tpot-gain': derived(percents(tpotGain)),
    'tpot-mean': derived(mean(tpotGain)),
    'ttft-gain': derived(ttftGain && percent(ttftGain.max)),
    'ttft-median-gain': derived(percents(ttftMedianGain)),
    'ttft-median-mean': derived(mean(ttftMedianGain)),
    'latency-gain': derived(percents(latencyGain)),
    'latency-mean': derived(mean(latencyGain)),
    'latency-median-gain': derived(percents(gain(latencyMedian, -1))),
    output: derived(between(output, 'tokens')),
    latency: recorded(between(inBoth(latencyMedian), 's')),
    'spread-level': recorded(number(pairs.filter(hasSpread).at(-1)?.level)),
    'top-level': recorded(number(levels.at(-1))),
    ...prefixed('kv', modeFigures(table, pairs, 'kv', why)),
    ...prefixed('rr', modeFigures(table, pairs, 'round_robin', why)),
  };
}

/** Returns the figures of one mode, over all levels and at the highest. */
function modeFigures(table: Baseline | undefined, pairs: Pair[], mode: Routing, why: string): Figures {
  const recorded = (value: string | undefined) => figure(value, 'recorded', why);
  const over = (value: Value) => span(pairs.map((pair) => value(pair[mode])));
  const hit = over((row) => row.kv_hit_ratio);
  const top = pairs.at(-1)?.[mode];
  const spread = pairs.filter(hasSpread).at(-1)?.[mode];
  const found = sustainedOf(table, mode);
  const note = table && found && sustainedNote(found, table);
  const judged = (value: string | undefined) => figure(value, note ? `derived, ${note}` : 'derived', why);
  return {
    'hit-mean': figure(mean(hit), 'derived', why),
    hit: recorded(percents(hit)),
    peak: recorded(rate(over(tokens)?.max, 'tokens/s')),
    tokens: recorded(between(over(tokens), 'tokens/s')),
    rps: recorded(between(over(requests), 'requests/s', 2)),
    ttft: recorded(millis(over((row) => row.ttft.p95))),
    'ttft-median': recorded(millis(over((row) => row.ttft.p50))),
    tpot: recorded(millis(over((row) => row.tpot.p95))),
    'tpot-median': recorded(millis(over((row) => row.tpot.p50))),
    'latency-p95': recorded(millis(over(latency95))),
    sustained: judged(found && sustainedLevel(found)),
    isolated: judged(found?.level === undefined ? undefined : listed(found.isolated)),
    spread: recorded(spread && `${number(spread.inflight_spread_min)}–${number(spread.inflight_spread_max)}`),
    'top-ttft': recorded(milliseconds(top?.ttft.p95)),
    'top-tokens': recorded(rate(top && tokens(top), 'tokens/s')),
    'top-latency': recorded(milliseconds(top?.latency.p95)),
  };
}

/** Joins the rows of each number of conversations, ascending. The texts name no rates. */
function pairUp(rows: Row[]): Pair[] {
  const at = (level: number, mode: Row['mode']) => rows.find((row) => row.concurrency === level && row.mode === mode);
  const numbers = rows.flatMap(({ concurrency }) => (typeof concurrency === 'number' ? [concurrency] : []));
  const levels = Array.from(new Set(numbers)).sort((a, b) => a - b);
  return levels.flatMap((level) => {
    const kv = at(level, 'kv');
    const roundRobin = at(level, 'round_robin');
    return kv && roundRobin ? [{ level, kv, round_robin: roundRobin }] : [];
  });
}

/**
 * Judges a level by the load generator's outcome, which includes the scatter of recorded values; else by the values.
 */
function isWorse({ level, kv, round_robin }: Pair, advantages: Baseline['advantages']): boolean {
  const judged = advantages?.find(({ concurrency }) => concurrency === level)?.of.ttft_p95;
  return judged ? judged.outcome === 'worse' : above(kv.ttft.p95, round_robin.ttft.p95);
}

function above(a: number | undefined, b: number | undefined): boolean {
  return a !== undefined && b !== undefined && a > b;
}

/** Whether the in-flight spread between workers was recorded at a level. */
function hasSpread({ kv, round_robin }: Pair): boolean {
  return [kv, round_robin].every((row) => row.inflight_spread_min !== undefined);
}

function quotient(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || !b ? undefined : a / b;
}

/** Returns how much a is above b (sign 1) or below it (sign −1), as a ratio of b. */
function ratio(a: number | undefined, b: number | undefined, sign: 1 | -1): number | undefined {
  return a === undefined || b === undefined || b === 0 ? undefined : (sign * (a - b)) / b;
}

function span(values: Array<number | undefined>): Span | undefined {
  const known = values.filter((value) => value !== undefined);
  const sum = known.reduce((before, value) => before + value, 0);
  return known.length > 0 ? { min: Math.min(...known), max: Math.max(...known), mean: sum / known.length } : undefined;
}

function listed(levels: Level[]): string {
  return levels.length > 0 ? levels.join(', ') : 'none';
}

function percents(range: Span | undefined): string | undefined {
  const to = range && range.min < 0 ? ' % to ' : '–';
  return range && `${number(range.min * 100, 1)}${to}${percent(range.max)}`;
}

function between(range: Span | undefined, unit: string, decimals = 0): string | undefined {
  return range && `${number(range.min, decimals)}–${number(range.max, decimals)} ${unit}`;
}

function mean(range: Span | undefined): string | undefined {
  return range && percent(range.mean);
}

function millis(range: Span | undefined): string | undefined {
  return range && `${digits(range.min, MS)}–${milliseconds(range.max)}`;
}
