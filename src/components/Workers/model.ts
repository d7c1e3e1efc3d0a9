import type { GPU, LaneSnapshot, Worker } from '../../client';
import { number, percent } from '../../lib/format';
import { speculationName } from '../../lib/names';

/** The load of a GPU, by the share of time that it works. */
type Load = 'low' | 'medium' | 'high';

/** Low below 30 %, medium to 70 %, high above. */
export function loadOf({ utilisation }: GPU): Load | undefined {
  if (utilisation === undefined) {
    return undefined;
  }
  return utilisation < 0.3 ? 'low' : utilisation <= 0.7 ? 'medium' : 'high';
}

/** The share of a GPU's memory in use. */
export function memoryShare({ memory_used, memory_total }: GPU): number | undefined {
  return memory_used === undefined || !memory_total ? undefined : memory_used / memory_total;
}

/** How long a worker that no longer reports keeps its card, in milliseconds. */
export const REMEMBERED = 60_000;

/** A worker with the time of its last report, in milliseconds of the load generator's clock. */
export interface Seen {
  worker: Worker;
  at: number;
}

/**
 * Returns the workers that report, and after them those that did within the last minute. A restarted worker keeps its
 * name and has another id. A worker whose own metrics are read for the first time keeps its id and has another name.
 */
export function recentWorkers(seen: Seen[], workers: Worker[], now: number): Seen[] {
  const names = new Set(workers.map(({ name }) => name));
  const ids = new Set(workers.map(({ id }) => id));
  const isGone = ({ id, name }: Worker) => !names.has(name) && !(id && ids.has(id));
  const gone = seen.filter(({ worker, at }) => isGone(worker) && now - at < REMEMBERED);
  return [...workers.map((worker) => ({ worker, at: now })), ...gone];
}

/** Returns a worker without its figures, so that no old number is shown. */
export function withoutFigures({ id, name, gpus }: Worker): Worker {
  return { id, name, gpus: gpus.map(({ index }) => ({ index })) };
}

/** Returns the figures of the whole cluster. Those that it does not report are undefined. */
export function facts({ cluster, target, state }: LaneSnapshot): Array<[term: string, value: string | undefined]> {
  const { acceptance, tokens_per_step } = cluster.speculation;
  return [
    ['GPU', target.deployment.gpu ?? cluster.gpu],
    ['Model', target.deployment.model ?? cluster.model ?? target.model],
    ['Engine', target.deployment.engine ?? cluster.engine],
    ['Speculation', speculationName(state.speculation)],
    [
      'Acceptance',
      acceptance === undefined
        ? state.speculation === 'off'
          ? speculationName('off')
          : undefined
        : percent(acceptance),
    ],
    ['Tokens per step', tokens_per_step === undefined ? undefined : number(tokens_per_step, 2)],
  ];
}
