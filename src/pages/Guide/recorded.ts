import type { Baseline } from '../../client';

type Row = Baseline['rows'][number];

/** The two modes that are recorded. */
export type Routing = 'kv' | 'round_robin';

/** The least and the most of something over levels, and its mean, each level counting once. */
export interface Span {
  min: number;
  max: number;
  mean: number;
}

/** What the levels of a recorded table say together, computed from its rows. */
export interface Recorded {
  /** Levels that have a row under round-robin and one under KV-aware routing, from the lowest. */
  levels: number[];
  /** By how much more output tokens per second KV-aware routing has, as a ratio; absent where not recorded. */
  tokensGain?: Span;
  /** By how much KV-aware routing lowers TTFT p95, as a ratio; negative where it raises it. */
  ttftGain?: Span;
  /** By how much it lowers the median TPOT, as a ratio. */
  tpotGain?: Span;
  /** By how much it lowers the median TTFT, as a ratio. */
  ttftMedianGain?: Span;
  /** By how much it lowers end-to-end latency p95, as a ratio. */
  latencyGain?: Span;
  /** By how much it lowers the median end-to-end latency, as a ratio. */
  latencyMedianGain?: Span;
  /** Output tokens of a request, from the rates of tokens and requests. */
  output?: Span;
  /** The median end-to-end latency in seconds, in both modes. */
  latency?: Span;
  /** Output tokens per second. */
  tokens: Partial<Record<Routing, Span>>;
  /** Requests per second. */
  rps: Partial<Record<Routing, Span>>;
  /** The share of cached prompt tokens. */
  hit: Partial<Record<Routing, Span>>;
  /** TTFT p95 in seconds. */
  ttft: Partial<Record<Routing, Span>>;
  /** The median TTFT in seconds. */
  ttftMedian: Partial<Record<Routing, Span>>;
  /** TPOT p95 in seconds. */
  tpot: Partial<Record<Routing, Span>>;
  /** The median TPOT in seconds. */
  tpotMedian: Partial<Record<Routing, Span>>;
  /** End-to-end latency p95 in seconds. */
  latencyP95: Partial<Record<Routing, Span>>;
  /** Levels at which KV-aware routing has the higher TTFT p95. */
  worse: number[];
  /** The highest level, and what was recorded there. */
  top?: { level: number; kv: Row; round_robin: Row };
  /** The highest level at which the in-flight spread between workers was recorded, and how large it was. */
  spread?: { level: number } & Record<Routing, Omit<Span, 'mean'>>;
}

interface Pair {
  level: number;
  kv: Row;
  round_robin: Row;
}

/** Sums a table up. */
export function summarise({ rows, advantages }: Pick<Baseline, 'rows' | 'advantages'>): Recorded {
  const pairs = pairUp(rows);
  const gain = (value: (row: Row) => number | undefined, sign: 1 | -1) =>
    span(pairs.map(({ kv, round_robin }) => ratio(value(kv), value(round_robin), sign)));
  const both = (value: (row: Row) => number | undefined) => ({
    kv: span(pairs.map((pair) => value(pair.kv))),
    round_robin: span(pairs.map((pair) => value(pair.round_robin))),
  });
  return {
    levels: pairs.map((pair) => pair.level),
    tokensGain: gain((row) => row.output_tokens_per_second, 1),
    ttftGain: gain((row) => row.ttft.p95, -1),
    tpotGain: gain((row) => row.tpot.p50, -1),
    ttftMedianGain: gain((row) => row.ttft.p50, -1),
    latencyMedianGain: gain((row) => row.latency.p50, -1),
    output: span(valuesOf(pairs, (row) => quotient(row.output_tokens_per_second, row.requests_per_second))),
    latency: span(valuesOf(pairs, (row) => row.latency.p50)),
    latencyGain: gain((row) => row.latency.p95, -1),
    tokens: both((row) => row.output_tokens_per_second),
    rps: both((row) => row.requests_per_second),
    hit: both((row) => row.kv_hit_ratio),
    ttft: both((row) => row.ttft.p95),
    ttftMedian: both((row) => row.ttft.p50),
    tpot: both((row) => row.tpot.p95),
    tpotMedian: both((row) => row.tpot.p50),
    latencyP95: both((row) => row.latency.p95),
    worse: pairs.filter((pair) => isWorse(pair, advantages)).map((pair) => pair.level),
    top: pairs.at(-1),
    spread: pairs
      .map(spread)
      .filter((one) => one !== undefined)
      .at(-1),
  };
}

function pairUp(rows: Row[]): Pair[] {
  const at = (level: number, mode: Row['mode']) => rows.find((row) => row.concurrency === level && row.mode === mode);
  const levels = Array.from(new Set(rows.map((row) => row.concurrency))).sort((a, b) => a - b);
  return levels.flatMap((level) => {
    const kv = at(level, 'kv');
    const roundRobin = at(level, 'round_robin');
    return kv && roundRobin ? [{ level, kv, round_robin: roundRobin }] : [];
  });
}

/** A value of every row of all pairs. */
function valuesOf(pairs: Pair[], value: (row: Row) => number | undefined) {
  return pairs.flatMap(({ kv, round_robin }) => [value(kv), value(round_robin)]);
}

function quotient(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || !b ? undefined : a / b;
}

/** How much a is above b (sign 1) or below it (sign −1), as a ratio of b. */
function ratio(a: number | undefined, b: number | undefined, sign: 1 | -1): number | undefined {
  return a === undefined || b === undefined || b === 0 ? undefined : (sign * (a - b)) / b;
}

function span(values: Array<number | undefined>): Span | undefined {
  const known = values.filter((value) => value !== undefined);
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  return known.length > 0 ? { min: Math.min(...known), max: Math.max(...known), mean } : undefined;
}

/** As the load generator judges the level, which knows how recorded values scatter; else by the values alone. */
function isWorse({ level, kv, round_robin }: Pair, advantages: Baseline['advantages']): boolean {
  const judged = advantages?.find(({ concurrency }) => concurrency === level)?.of.ttft_p95;
  return judged ? judged.outcome === 'worse' : above(kv.ttft.p95, round_robin.ttft.p95);
}

function above(a: number | undefined, b: number | undefined): boolean {
  return a !== undefined && b !== undefined && a > b;
}

function spread({ level, kv, round_robin }: Pair): Recorded['spread'] {
  const of = (row: Row) => span([row.inflight_spread_min, row.inflight_spread_max]);
  const found = { kv: of(kv), round_robin: of(round_robin) };
  return found.kv && found.round_robin && { level, kv: found.kv, round_robin: found.round_robin };
}
