import type { Baseline, Column, LaneSnapshot, Live, Settings, Speculation } from '../../client';
import { DASH, milliseconds, NOT_REPORTED, number, percent, seconds } from '../../lib/format';
import { engineName, modeName, servedSpeculation } from '../../lib/names';
import { isDecided, verdictText } from '../../lib/outcome';
import { sustainedLevel, sustainedNote, sustainedOf } from '../../lib/sustained';
import { targetKind, type TargetKind } from '../../lib/target';
import { silence, whyUnread } from '../../lib/unread';
import { workerCount } from '../../lib/workers';
import { elsewhere } from './documents';
import type { Recorded, Routing, Span } from './recorded';

/** A figure as a text quotes it. */
export interface Figure {
  /** With its unit; a dash where there is no value. */
  value: string;
  /** What kind of figure it is: live, recorded, published …, or why there is none. */
  word: string;
  /** Where it was published. */
  source?: Source;
}

/** Where something was published. */
export interface Source {
  title: string;
  url: string;
}

/** Figures by the name that texts quote them by. */
export type Figures = Record<string, Figure>;

/** Puts a word and a dot in front of all names. */
export function prefixed(prefix: string, figures: Figures): Figures {
  return Object.fromEntries(Object.entries(figures).map(([id, figure]) => [`${prefix}.${id}`, figure]));
}

/** The value with its word, or a dash with the reason why there is none. */
function figure(value: string | undefined, word: string, why: string): Figure {
  return value === undefined || value === DASH ? { value: DASH, word: why } : { value, word };
}

/** The objectives in force. */
export function sloFigures(settings: Settings | undefined): Figures {
  const plain = (value: number | undefined) => figure(milliseconds(value, 0), 'configured', 'currently unknown');
  return { ttft: plain(settings?.slo.ttft), tpot: plain(settings?.slo.tpot) };
}

type Read = (lane: LaneSnapshot) => string | undefined;

/** Known whether it runs or not. */
const configured: Record<string, Read> = {
  mode: ({ state }) => (state.mode === 'unknown' ? 'not known' : modeName(state.mode)),
  concurrency: ({ state }) => number(state.concurrency.target),
  turns: ({ state: { shape } }) =>
    shape.turns.min === shape.turns.max ? `${shape.turns.min}` : `${shape.turns.min}–${shape.turns.max}`,
  'max-tokens': ({ state }) => number(state.shape.max_tokens),
  speculation: ({ state }) => inSentence(servedSpeculation(state.speculation, state.driver)),
};

/** As the target says of itself. */
const reported: Record<string, Read> = {
  model: ({ target }) => target.deployment.model ?? target.model,
  engine: ({ target, cluster }) => engineName(target.deployment.engine ?? cluster.engine),
  gpu: ({ target, cluster }) => target.deployment.gpu ?? cluster.gpu,
  openings: ({ state }) => openingsText(state.shape.openings),
  workers: ({ target, cluster }) => number(workerCount(cluster) || target.deployment.workers),
};

/** Measured in the step under way; there are none while nothing runs. */
const measured: Record<string, Read> = {
  'ttft.p50': ({ baseline }) => milliseconds(baseline.live.ttft.p50),
  'ttft.p95': ({ baseline }) => milliseconds(baseline.live.ttft.p95),
  'tpot.p50': ({ baseline }) => milliseconds(baseline.live.tpot.p50),
  'tpot.p95': ({ baseline }) => milliseconds(baseline.live.tpot.p95),
  'latency.p50': ({ baseline }) => seconds(baseline.live.latency.p50),
  'latency.p95': ({ baseline }) => seconds(baseline.live.latency.p95),
  tokens: ({ baseline }) => rate(baseline.live_output_tokens_per_second, 'tokens/s'),
  rps: ({ baseline }) => rate(baseline.live_requests_per_second, 'requests/s', 2),
  hit: ({ baseline, kv }) => (kv.not_reported ? NOT_REPORTED : percent(baseline.live_kv_hit_ratio)),
  'change.ttft': (lane) => change(roundRobin(lane)?.ttft.p95),
  'change.tokens': (lane) => change(roundRobin(lane)?.output_tokens_per_second),
};

function roundRobin({ baseline, state }: LaneSnapshot): Column | undefined {
  return columnOf(baseline.columns, 'round_robin', state.speculation);
}

/** Read from the running cluster or counted since the start, whatever the step. */
const running: Record<string, Read> = {
  queued: ({ cluster }) => number(cluster.queued),
  spread: ({ cluster }) => number(cluster.spread),
  elsewhere,
  'batch-limit': ({ cluster }) => number(cluster.batch_limit),
  'turn-1': ({ ttft_by_turn }) => milliseconds(ttft_by_turn.find((turn) => turn.turn === '1')?.p50),
  'turn-3': ({ ttft_by_turn }) => milliseconds(ttft_by_turn.find((turn) => turn.turn === '3')?.p50),
  'prompt-tokens': ({ totals }) => perRequest(totals.input_tokens, totals.ok),
  'output-tokens': ({ totals }) => perRequest(totals.output_tokens, totals.ok),
  errors: ({ totals }) => number(totals.errors),
  acceptance: ({ cluster }) => percent(cluster.speculation.acceptance),
  'tokens-per-step': ({ cluster }) => number(cluster.speculation.tokens_per_step, 2),
};

/** A word as it stands inside a sentence; what is written in capitals stays so. */
function inSentence(word: string): string {
  return word === word.toUpperCase() ? word : word.toLowerCase();
}

function openingsText(openings: number | undefined): string | undefined {
  return openings === 0 ? 'one for each conversation' : openings === undefined ? undefined : number(openings);
}

const liveWords: Partial<Record<TargetKind, string>> = { simulated: 'live, simulated', mock: 'live, mock workers' };

/** What is now: settings, what the target says of itself, and what is measured. */
export function liveFigures({ state, lane }: Live): Figures {
  const why = lane ? lane.state.phase : state.status === 'live' ? 'no such lane' : state.status;
  const runs = lane?.state.phase === 'running';
  const word = liveWords[targetKind(lane, undefined)] ?? 'live';
  const read = (reads: Record<string, Read>, from: LaneSnapshot | undefined, as: string, none: string) =>
    Object.fromEntries(Object.entries(reads).map(([id, of]) => [id, figure(from && of(from), as, none)]));
  return {
    ...read(configured, lane, 'configured', why),
    ...read(reported, lane, 'as configured', lane ? 'not told' : why),
    ...read(measured, runs ? lane : undefined, lane?.state.settling ? 'settling' : word, runs ? 'no data yet' : why),
    ...read(running, runs ? lane : undefined, word, lane && runs ? silence(whyUnread(lane.cluster, 'workers')) : why),
  };
}

function rate(value: number | undefined, unit: string, decimals = 0): string | undefined {
  return value === undefined ? undefined : `${number(value, decimals)} ${unit}`;
}

function perRequest(tokens: number, requests: number): string | undefined {
  return requests > 0 ? `${number(tokens / requests)} tokens` : undefined;
}

function change(found: Column['kv_hit_ratio'] | undefined): string | undefined {
  if (!found?.improvement) {
    return undefined;
  }
  const { percent: value, outcome } = found.improvement;
  const verdict = verdictText(found.improvement);
  if (isDecided(outcome) || outcome === 'withheld') {
    return outcome === 'withheld' ? verdict : `${number(Math.abs(value), 1)} % ${verdict}`;
  }
  return `${number(Math.abs(value), 1)} % ${value < 0 ? 'worse' : 'better'}, ${verdict}`;
}

/** A mode's column; of several with different speculations that with the one asked for, else the first. */
export function columnOf(columns: Column[], mode: Routing, speculation?: Speculation): Column | undefined {
  const of = columns.filter((column) => column.mode === mode);
  return of.find((column) => column.speculation === speculation) ?? of[0];
}

/** How a baseline's value was found, in words. */
export const lookupWords: Record<Column['kv_hit_ratio']['lookup'], string> = {
  exact: 'recorded',
  interpolated: 'interpolated',
  outside_range: 'outside the recorded range',
  not_recorded: 'not recorded',
};

/** What was recorded in a mode at the concurrency in force. */
export function columnFigures(lane: LaneSnapshot | undefined, mode: Routing): Figures {
  const column = lane && columnOf(lane.baseline.columns, mode, lane.state.speculation);
  const own = column?.measured === undefined ? 'recorded' : 'measured here';
  const of = (found: Column['kv_hit_ratio'] | undefined, write: (value?: number) => string) => {
    const word = found ? lookupWords[found.lookup] : 'not recorded';
    return figure(write(found?.value), word === 'recorded' ? own : word, lane ? word : 'currently unknown');
  };
  return {
    'ttft.p50': of(column?.ttft.p50, (value) => milliseconds(value, 1)),
    'ttft.p95': of(column?.ttft.p95, (value) => milliseconds(value, 1)),
    'tpot.p50': of(column?.tpot.p50, (value) => milliseconds(value, 1)),
    'tpot.p95': of(column?.tpot.p95, (value) => milliseconds(value, 1)),
    'latency.p95': of(column?.latency.p95, seconds),
    tokens: of(column?.output_tokens_per_second, (value) => rate(value, 'tokens/s') ?? DASH),
    rps: of(column?.requests_per_second, (value) => rate(value, 'requests/s', 2) ?? DASH),
    hit: of(column?.kv_hit_ratio, percent),
  };
}

/** What was recorded at all levels together. */
export function recordedFigures(table: Baseline | undefined, recorded: Recorded | undefined): Figures {
  const deployment = table?.deployment;
  const of = (value: string | undefined, word = 'recorded') =>
    figure(value, word, table ? 'not recorded' : 'no recorded table yet');
  const both = (name: string, write: (mode: Routing) => string | undefined, word?: string): Figures => ({
    [`kv.${name}`]: of(write('kv'), word),
    [`rr.${name}`]: of(write('round_robin'), word),
  });
  return {
    title: of(table?.title),
    notes: of(table?.notes?.replaceAll('\n', ' ')),
    gpu: of(deployment?.gpu),
    model: of(deployment?.model),
    engine: of(engineName(deployment?.engine)),
    workers: of(deployment?.workers === undefined ? undefined : number(deployment.workers)),
    levels: of(recorded && levels(recorded.levels)),
    'levels-count': of(recorded && number(recorded.levels.length)),
    'worse-levels': of(recorded && (recorded.worse.length > 0 ? recorded.worse.join(', ') : 'none')),
    'tokens-gain': of(percents(recorded?.tokensGain, 1), 'derived'),
    'tpot-gain': of(percents(recorded?.tpotGain, 1), 'derived'),
    'ttft-gain': of(recorded?.ttftGain && percent(recorded.ttftGain.max), 'derived'),
    'ttft-median-gain': of(percents(recorded?.ttftMedianGain, 1), 'derived'),
    'latency-gain': of(percents(recorded?.latencyGain, 1), 'derived'),
    'ttft-median-mean': of(mean(recorded?.ttftMedianGain), 'derived'),
    'latency-median-gain': of(percents(recorded?.latencyMedianGain, 1), 'derived'),
    output: of(recorded?.output && `${number(recorded.output.min)}–${number(recorded.output.max)} tokens`, 'derived'),
    latency: of(recorded?.latency && `${number(recorded.latency.min, 0)}–${number(recorded.latency.max, 0)} s`),
    'tensor-parallel': of(deployment?.tensor_parallel === undefined ? undefined : number(deployment.tensor_parallel)),
    'tokens-mean': of(mean(recorded?.tokensGain), 'derived'),
    'tpot-mean': of(mean(recorded?.tpotGain), 'derived'),
    'latency-mean': of(mean(recorded?.latencyGain), 'derived'),
    ...both('hit-mean', (mode) => mean(recorded?.hit[mode]), 'derived'),
    ...both('peak', (mode) => rate(recorded?.tokens[mode]?.max, 'tokens/s')),
    ...both('tokens', (mode) => spanText(recorded?.tokens[mode], 'tokens/s', 0)),
    ...both('rps', (mode) => spanText(recorded?.rps[mode], 'requests/s', 2)),
    ...both('hit', (mode) => percents(recorded?.hit[mode], 1)),
    ...both('ttft', (mode) => millis(recorded?.ttft[mode])),
    ...both('ttft-median', (mode) => millis(recorded?.ttftMedian[mode])),
    ...both('tpot', (mode) => millis(recorded?.tpot[mode])),
    ...both('tpot-median', (mode) => millis(recorded?.tpotMedian[mode])),
    ...both('latency-p95', (mode) => spanText(recorded?.latencyP95[mode], 's', 1)),
    ...sustainedFigures(table),
    'spread-level': of(recorded?.spread && number(recorded.spread.level)),
    ...both('spread', (mode) => recorded?.spread && plain(recorded.spread[mode])),
    'top-level': of(recorded?.top && number(recorded.top.level)),
    ...both('top-ttft', (mode) => recorded?.top && milliseconds(recorded.top[mode].ttft.p95, 1)),
    ...both('top-tokens', (mode) => rate(recorded?.top?.[mode].output_tokens_per_second, 'tokens/s')),
    ...both('top-latency', (mode) => recorded?.top && seconds(recorded.top[mode].latency.p95)),
  };
}

/** As the load generator judges the table by the objectives in force. */
function sustainedFigures(table: Baseline | undefined): Figures {
  const why = table ? 'not recorded' : 'no recorded table yet';
  const of = (prefix: string, mode: Routing): Figures => {
    const found = sustainedOf(table, mode);
    const note = table && found && sustainedNote(found, table);
    const word = note ? `derived, ${note}` : 'derived';
    const isolated = found && (found.isolated.length > 0 ? found.isolated.join(', ') : 'none');
    return {
      [`${prefix}.sustained`]: figure(found && sustainedLevel(found), word, why),
      [`${prefix}.isolated`]: figure(found?.level === undefined ? undefined : isolated, word, why),
    };
  };
  return { ...of('kv', 'kv'), ...of('rr', 'round_robin') };
}

function plain({ min, max }: Omit<Span, 'mean'>): string {
  return `${number(min)}–${number(max)}`;
}

function levels(all: number[]): string | undefined {
  return all.length > 0 ? `${all[0]}–${all[all.length - 1]}` : undefined;
}

function percents(span: Span | undefined, decimals: number): string | undefined {
  const to = span && span.min < 0 ? ' % to ' : '–';
  return span && `${number(span.min * 100, decimals)}${to}${percent(span.max, decimals)}`;
}

function spanText(span: Span | undefined, unit: string, decimals: number): string | undefined {
  return span && `${number(span.min, decimals)}–${number(span.max, decimals)} ${unit}`;
}

function mean(span: Span | undefined): string | undefined {
  return span && percent(span.mean);
}

function millis(span: Span | undefined): string | undefined {
  return span && `${number(span.min * 1000, 1)}–${milliseconds(span.max, 1)}`;
}
