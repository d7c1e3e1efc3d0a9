import type { Baseline } from '../../client';
import { digits, milliseconds, MS, number, percent } from '../../lib/format';
import type { Level } from '../../lib/level';
import { engineName } from '../../lib/names';
import { sustainedLevel, sustainedNote, sustainedOf } from '../../lib/sustained';
import { figuresOf, prefixed, rate, type Figures, type Routing } from './figures';

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

/**
 * Returns the figures of a table: over all recorded levels (`rec`), and over those that the documents of its runs print
 * (`doc`). Gains include their unfavorable end.
 */
export function recordedFigures(table: Baseline | undefined): Figures {
  const why = table ? 'not recorded' : 'no recorded table yet';
  const pairs = pairUp(table?.rows ?? []);
  const printed = table?.provenance?.printed_levels;
  const documented = pairs.filter(({ level }) => printed?.includes(level) ?? true);
  return { ...prefixed('rec', allFigures(table, pairs, why)), ...prefixed('doc', documentedFigures(documented, why)) };
}

function allFigures(table: Baseline | undefined, pairs: Pair[], why: string): Figures {
  const { model, gpu, engine, workers, tensor_parallel } = table?.deployment ?? {};
  const levels = pairs.map((pair) => pair.level);
  const worse = pairs.filter((pair) => isWorse(pair, table?.advantages));
  const later = worse.at(-1);
  const inBoth = (value: Value) => span(pairs.flatMap(({ kv, round_robin }) => [value(kv), value(round_robin)]));
  const output = inBoth((row) => quotient(tokens(row), requests(row)));
  const recorded = {
    notes: table?.notes?.replaceAll('\n', ' '),
    gpu,
    model,
    engine: engineName(engine),
    workers: number(workers),
    'tensor-parallel': number(tensor_parallel),
    levels: toFrom(levels),
    'levels-count': table && number(levels.length),
    'worse-levels': table && listed(worse.map(({ level }) => level)),
    latency: between(inBoth(latencyMedian), 's'),
    'later-level': number(later?.level),
    ...queueValues(pairs),
  };
  const derived = { 'tokens-gain': percents(gain(pairs, tokens, 1)), output: between(output, 'tokens') };
  return {
    ...figuresOf(recorded, 'recorded', why),
    ...figuresOf(derived, 'derived', why),
    ...prefixed('kv', modeFigures(table, pairs, 'kv', later, why)),
    ...prefixed('rr', modeFigures(table, pairs, 'round_robin', later, why)),
  };
}

/** Returns how queues built up under KV-aware routing, at the level where that was recorded. */
function queueValues(pairs: Pair[]) {
  const found = pairs.filter(hasSpread).at(-1);
  const { queue_largest, queue_second, queue_before, inflight_mean, inflight_threshold, recovery_min, recovery_max } =
    found?.kv ?? {};
  return {
    'spread-level': number(found?.level),
    inflight: number(inflight_mean),
    threshold: number(inflight_threshold),
    'queue-before': milliseconds(queue_before),
    'queue-max': milliseconds(queue_largest),
    'queue-second': milliseconds(queue_second),
    'queue-other': milliseconds(found?.round_robin.queue_largest),
    recovery: recovery_max === undefined ? undefined : `${number(recovery_min)} to ${number(recovery_max)} s`,
  };
}

/** Returns what KV-aware routing gained at some levels, and where the slowest first tokens gained most. */
function documentedFigures(pairs: Pair[], why: string): Figures {
  const ttftGain = (pair: Pair) => ratio(pair.kv.ttft.p95, pair.round_robin.ttft.p95, -1) ?? -Infinity;
  const most = [...pairs].sort((a, b) => ttftGain(b) - ttftGain(a)).at(0);
  const gains = (name: string, value: Value, sign: 1 | -1) => {
    const of = gain(pairs, value, sign);
    return { [`${name}-gain`]: percents(of), [`${name}-mean`]: mean(of) };
  };
  const ofMode = (mode: Routing): Figures => {
    const hit = span(pairs.map((pair) => pair[mode].kv_hit_ratio));
    return {
      ...figuresOf({ hit: percents(hit), ttft: milliseconds(most?.[mode].ttft.p95) }, 'recorded', why),
      ...figuresOf({ 'hit-mean': mean(hit) }, 'derived', why),
    };
  };
  const derived = {
    'ttft-gain': most && percent(ttftGain(most)),
    ...gains('tokens', tokens, 1),
    ...gains('tpot', (row) => row.tpot.p50, -1),
    ...gains('ttft-median', (row) => row.ttft.p50, -1),
    ...gains('latency', latency95, -1),
    'latency-median-gain': percents(gain(pairs, latencyMedian, -1)),
  };
  const levels = toFrom(pairs.map(({ level }) => level));
  return {
    ...figuresOf({ levels, 'ttft-level': number(most?.level) }, 'recorded', why),
    ...figuresOf(derived, 'derived', why),
    ...prefixed('kv', ofMode('kv')),
    ...prefixed('rr', ofMode('round_robin')),
  };
}

/** Returns the figures of one mode, over all levels, and at the highest at which KV-aware routing was later. */
function modeFigures(
  table: Baseline | undefined,
  pairs: Pair[],
  mode: Routing,
  later: Pair | undefined,
  why: string
): Figures {
  const over = (value: Value) => span(pairs.map((pair) => value(pair[mode])));
  const at = later?.[mode];
  const spread = pairs.filter(hasSpread).at(-1)?.[mode];
  const found = sustainedOf(table, mode);
  const note = table && found && sustainedNote(found, table);
  const judged = {
    sustained: found && sustainedLevel(found),
    isolated: found?.level === undefined ? undefined : listed(found.isolated),
  };
  const recorded = {
    hit: percents(over((row) => row.kv_hit_ratio)),
    peak: rate(over(tokens)?.max, 'tokens/s'),
    tokens: between(over(tokens), 'tokens/s'),
    rps: between(over(requests), 'requests/s', 2),
    ttft: millis(over((row) => row.ttft.p95)),
    'ttft-median': millis(over((row) => row.ttft.p50)),
    tpot: millis(over((row) => row.tpot.p95)),
    'tpot-median': millis(over((row) => row.tpot.p50)),
    'latency-p95': millis(over(latency95)),
    spread: spread && `${number(spread.inflight_spread_min)}–${number(spread.inflight_spread_max)}`,
    'later-ttft': milliseconds(at?.ttft.p95),
    'later-tokens': rate(at && tokens(at), 'tokens/s'),
    'later-latency': milliseconds(at?.latency.p95),
  };
  return { ...figuresOf(recorded, 'recorded', why), ...figuresOf(judged, note ? `derived, ${note}` : 'derived', why) };
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
  return judged ? judged.outcome === 'worse' : (kv.ttft.p95 ?? 0) > (round_robin.ttft.p95 ?? Infinity);
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

/** Returns how much KV-aware routing is above round-robin (sign 1) or below it (sign −1), over levels. */
function gain(pairs: Pair[], value: Value, sign: 1 | -1): Span | undefined {
  return span(pairs.map(({ kv, round_robin }) => ratio(value(kv), value(round_robin), sign)));
}

function span(values: Array<number | undefined>): Span | undefined {
  const known = values.filter((value) => value !== undefined);
  const sum = known.reduce((before, value) => before + value, 0);
  return known.length > 0 ? { min: Math.min(...known), max: Math.max(...known), mean: sum / known.length } : undefined;
}

function listed(levels: Level[]): string {
  return levels.length > 0 ? levels.join(', ') : 'none';
}

/** Returns the lowest and the highest of ascending levels. */
function toFrom(levels: Level[]): string | undefined {
  return levels.length > 0 ? `${levels[0]} to ${levels[levels.length - 1]}` : undefined;
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
