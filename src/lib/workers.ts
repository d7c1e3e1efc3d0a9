import type { Cluster, Worker } from '../client';
import { number, percent } from './format';

/** Shortens a name to this number of letters. Its end is kept, because pods of one deployment differ there. */
export function shorten(name: string, letters: number): string {
  return name.length <= letters ? name : `…${name.slice(name.length - letters + 1)}`;
}

/** The length from which the name of a pod is shortened. */
const POD_LETTERS = 24;

/**
 * Returns a worker's name as pages show it. Addresses of metrics pages are not shortened: they may differ at their
 * beginning.
 */
export function shortName(name: string): string {
  return name.includes(':') ? name : shorten(name, POD_LETTERS);
}

/**
 * Returns a worker's short name. Where the cluster does not list it, that is the end of a Dynamo's id, or the name that
 * the router reports. Without an id it is undefined.
 */
export function nameOf(id: string | undefined, workers: Worker[]): string | undefined {
  if (id === undefined) {
    return undefined;
  }
  const name = workerOf(id, workers)?.name;
  return name === undefined && /^\d+$/.test(id) ? `…${id.slice(-6)}` : shortName(name ?? id);
}

/** Returns the worker that a turn names: by its id, or by the name of its pod as some routers report it. */
export function workerOf(id: string | undefined, workers: Worker[]): Worker | undefined {
  return id === undefined ? undefined : workers.find((w) => w.id === id || w.name === id);
}

/** Returns the number of workers, listed or not. */
export function workerCount({ workers, all_workers }: Cluster): number {
  return all_workers?.count ?? workers.length;
}

/** Describes the number of workers that are not listed; undefined where all are. */
export function unlisted(cluster: Cluster): string | undefined {
  const more = workerCount(cluster) - cluster.workers.length;
  return more > 0 ? `${number(more)} more workers` : undefined;
}

/** Summarizes all workers, in sentences, where only some are listed. */
export function aboutAll(cluster: Cluster): string | undefined {
  const all = cluster.all_workers;
  if (!all) {
    return undefined;
  }
  const { inflight, cache_use, waiting } = all;
  return [
    `${unlisted(cluster)}: only the busiest and the least busy of ${number(all.count)} are listed.`,
    inflight &&
      `In flight per worker: half have ${number(inflight.p50)} or fewer, 9 in 10 have ` +
        `${number(inflight.p90)} or fewer, from ${number(inflight.min)} to ` +
        `${number(inflight.max)}.`,
    waiting !== undefined && `Waiting at all of them: ${number(waiting)}.`,
    cache_use &&
      `KV cache in use: half are at ${percent(cache_use.p50)} or less, 9 in 10 at ` +
        `${percent(cache_use.p90)} or less, from ${percent(cache_use.min)} to ` +
        `${percent(cache_use.max)}.`,
  ]
    .filter(Boolean)
    .join(' ');
}
