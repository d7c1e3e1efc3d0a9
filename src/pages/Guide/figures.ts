import type { Column, LaneSnapshot, Live, Settings } from '../../client';
import { DASH, milliseconds, NOT_REPORTED, number, objective, percent } from '../../lib/format';
import { engineName, modeName, speculationName } from '../../lib/names';
import { targetKind, type TargetKind } from '../../lib/target';
import { missingText, whyUnread } from '../../lib/unread';
import { workerCount } from '../../lib/workers';

/** A figure as a text quotes it. */
export interface Figure {
  /** The value with its unit; a dash without a value. */
  value: string;
  /** The kind of figure, such as live, recorded or published, or why there is none. */
  word: string;
}

/** Figures by the names that texts quote. */
export type Figures = Record<string, Figure>;

/** The two recorded modes. */
export type Routing = 'kv' | 'round_robin';

/** Prefixes all names with a word and a dot. */
export function prefixed(prefix: string, figures: Figures): Figures {
  return Object.fromEntries(Object.entries(figures).map(([id, figure]) => [`${prefix}.${id}`, figure]));
}

/** Returns the value with its kind, or a dash with the reason. */
function figure(value: string | undefined, word: string, why: string): Figure {
  return value === undefined || value === DASH ? { value: DASH, word: why } : { value, word };
}

/** Returns values with their kind, or a dash with the reason. */
export function figuresOf(values: Record<string, string | undefined>, word: string, why: string): Figures {
  return Object.fromEntries(Object.entries(values).map(([id, value]) => [id, figure(value, word, why)]));
}

/** The objectives in force. */
export function sloFigures(settings: Settings | undefined): Figures {
  const { ttft, tpot } = settings?.slo ?? {};
  return figuresOf({ ttft: objective(ttft), tpot: objective(tpot) }, 'configured', 'currently unknown');
}

type Read = (lane: LaneSnapshot) => string | undefined;

/** The figures that are known whether the workload runs or not. */
const configured: Record<string, Read> = {
  mode: ({ state }) => (state.mode === 'unknown' ? 'not known' : modeName(state.mode)),
  // The texts say how many conversations there are at once. At a rate, those are the ones in progress.
  concurrency: ({ state: { concurrency: at } }) => number(typeof at.target === 'number' ? at.target : at.actual),
  turns: ({ state: { shape } }) =>
    shape.turns.min === shape.turns.max ? `${shape.turns.min}` : `${shape.turns.min}–${shape.turns.max}`,
  'max-tokens': ({ state }) => number(state.shape.max_tokens),
  speculation: ({ state }) => inSentence(speculationName(state.speculation)),
};

/** The figures that the target reports about itself. */
const reported: Record<string, Read> = {
  model: ({ target }) => target.deployment.model ?? target.model,
  engine: ({ target, cluster }) => engineName(target.deployment.engine ?? cluster.engine),
  gpu: ({ target, cluster }) => target.deployment.gpu ?? cluster.gpu,
  openings: ({ state }) => openingsText(state.shape.openings),
  workers: ({ target, cluster }) => number(workerCount(cluster) || target.deployment.workers),
};

/** The measurements of the step in progress; none while nothing runs. */
const measured: Record<string, Read> = {
  'ttft.p95': ({ baseline }) => milliseconds(baseline.live.ttft.p95),
  'tpot.p95': ({ baseline }) => milliseconds(baseline.live.tpot.p95),
  'latency.p50': ({ baseline }) => milliseconds(baseline.live.latency.p50),
  tokens: ({ baseline }) => rate(baseline.live_output_tokens_per_second, 'tokens/s'),
  rps: ({ baseline }) => rate(baseline.live_requests_per_second, 'requests/s', 2),
  hit: ({ baseline, kv }) => (kv.not_reported ? NOT_REPORTED : percent(baseline.live_kv_hit_ratio)),
};

/** The figures read from the running cluster or counted since the start, whatever the step. */
const running: Record<string, Read> = {
  queued: ({ cluster }) => number(cluster.queued),
  spread: ({ cluster }) => number(cluster.spread),
  elsewhere,
  'batch-limit': ({ cluster }) => number(cluster.batch_limit),
  'turn-1': ({ ttft_by_turn }) => milliseconds(ttft_by_turn.find((turn) => turn.turn === '1')?.p50),
  'turn-3': ({ ttft_by_turn }) => milliseconds(ttft_by_turn.find((turn) => turn.turn === '3')?.p50),
  'prompt-tokens': ({ totals }) => perRequest(totals.input_tokens, totals.ok),
  'output-tokens': ({ totals }) => perRequest(totals.output_tokens, totals.ok),
  acceptance: ({ cluster }) => percent(cluster.speculation.acceptance),
  'tokens-per-step': ({ cluster }) => number(cluster.speculation.tokens_per_step, 2),
};

/** How often consecutive requests go to different workers, as "2 times in 3"; undefined for a single worker. */
function elsewhere({ cluster }: Pick<LaneSnapshot, 'cluster'>): string | undefined {
  const workers = workerCount(cluster);
  return workers > 1 ? `${number(workers - 1)} times in ${number(workers)}` : undefined;
}

/** Returns a word in the form inside a sentence. Words in capitals keep them. */
function inSentence(word: string): string {
  return word === word.toUpperCase() ? word : word.toLowerCase();
}

function openingsText(openings: number | undefined): string | undefined {
  return openings === 0 ? 'one for each conversation' : openings === undefined ? undefined : number(openings);
}

const liveWords: Partial<Record<TargetKind, string>> = { simulated: 'live, simulated', mock: 'live, mock workers' };

/** Returns the live figures: settings, the target's own reports, and measurements. */
export function liveFigures({ state, lane }: Live): Figures {
  const why = lane ? lane.state.phase : state.status === 'live' ? 'no such lane' : state.status;
  const runs = lane?.state.phase === 'running';
  const word = liveWords[targetKind(lane, undefined)] ?? 'live';
  const read = (reads: Record<string, Read>, from: LaneSnapshot | undefined, as: string, none: string) =>
    Object.fromEntries(Object.entries(reads).map(([id, of]) => [id, figure(from && of(from), as, none)]));
  return {
    ...read(configured, lane, 'configured', why),
    ...read(reported, lane, 'as configured', lane ? 'not reported' : why),
    ...read(measured, runs ? lane : undefined, lane?.state.settling ? 'settling' : word, runs ? 'no data yet' : why),
    ...read(
      running,
      runs ? lane : undefined,
      word,
      lane && runs ? missingText(whyUnread(lane.cluster, 'workers')) : why
    ),
  };
}

/** A value with its unit; undefined without one. */
export function rate(value: number | undefined, unit: string, decimals = 0): string | undefined {
  return value === undefined ? undefined : `${number(value, decimals)} ${unit}`;
}

function perRequest(tokens: number, requests: number): string | undefined {
  return requests > 0 ? `${number(tokens / requests)} tokens` : undefined;
}

/** Describes the origin of a baseline's value. */
const lookupWords: Record<Column['kv_hit_ratio']['lookup'], string> = {
  exact: 'recorded',
  interpolated: 'interpolated',
  outside_range: 'outside the recorded range',
  not_recorded: 'not recorded',
};

/** Returns the recorded figures of a mode at the concurrency in force. */
export function columnFigures(lane: LaneSnapshot | undefined, mode: Routing): Figures {
  const ofMode = lane?.baseline.columns.filter((one) => one.mode === mode);
  const column = ofMode?.find(({ speculation }) => speculation === lane?.state.speculation) ?? ofMode?.[0];
  const origin = column?.measured === undefined ? 'recorded' : 'measured here';
  const columnFigure = (found: Column['kv_hit_ratio'] | undefined, write: (value?: number) => string) => {
    const word = found ? lookupWords[found.lookup] : 'not recorded';
    return figure(write(found?.value), word === 'recorded' ? origin : word, lane ? word : 'currently unknown');
  };
  return {
    'ttft.p95': columnFigure(column?.ttft.p95, milliseconds),
    hit: columnFigure(column?.kv_hit_ratio, percent),
  };
}
