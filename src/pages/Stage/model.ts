import { THIS_TARGET } from '../../components/Comparison';
import type { Cluster, Comparison, Live, Worker } from '../../client';
import { inMs, isWithheld, metricName, worst } from '../../lib/clientError';
import { DASH } from '../../lib/format';
import { lastKnown } from '../../lib/known';
import { modeText } from '../../lib/names';
import { targetTrouble } from '../../lib/target';
import { clock } from '../../lib/time';
import { workerCount } from '../../lib/workers';
import { LANE, TWIN } from '../lane';

/** What runs: the mode of the lane, or those of both lanes; a dash until it is known. */
export function titleOf(live: Live, both: boolean): string {
  const [main, twin] = [LANE, TWIN].map((lane) => {
    const known = lastKnown(live, lane);
    return known ? modeText(known.lane.state) : DASH;
  });
  if (!both) {
    return main;
  }
  return main === twin ? `${main} on both routers` : `${main} and ${twin}`;
}

/** How a baseline's values came about, in a word. */
export function sourceWord({ name }: Pick<Comparison, 'name'>): string {
  return name === THIS_TARGET ? 'measured' : 'recorded';
}

/** One bar: a worker and how many requests are in flight there. */
interface Bar {
  name: string;
  /** Undefined where the engine does not report it. */
  inflight?: number;
  /** Of the longest bar, from 0 to 1. */
  share: number;
}

/** How many bars there is room for. */
const MAX_BARS = 8;

/** The workers as bars, the busiest ones where there are too many, and how many have none. */
export function toBars(cluster: Cluster): { bars: Bar[]; more: number } {
  const listed = cluster.workers;
  const shown = listed.length <= MAX_BARS ? listed : [...listed].sort(busier).slice(0, MAX_BARS);
  const longest = Math.max(...shown.map(({ inflight }) => inflight ?? 0));
  const bars = shown.map(({ name, inflight }) => ({
    name,
    inflight,
    share: longest > 0 ? (inflight ?? 0) / longest : 0,
  }));
  return { bars, more: workerCount(cluster) - bars.length };
}

function busier(a: Worker, b: Worker): number {
  return (b.inflight ?? -1) - (a.inflight ?? -1);
}

/** What is wrong, in a sentence each: a crowd must not read old or spoilt figures as good ones. */
export function troubles({ state, lane }: Live): string[] {
  if (state.status === 'lost') {
    return [`Lost since ${clock(state.since)}. ${state.problem}`];
  }
  if (!lane || state.status !== 'live') {
    return [];
  }
  const { client } = state.snapshot;
  const change = lane.state.mode_change;
  const trouble = targetTrouble(lane);
  return [
    trouble && `${trouble.title}. ${trouble.detail}`,
    lane.state.running && isWithheld(client) && `${client.reason}.`,
    change?.failed && `The mode was not changed: ${change.message}`,
    change?.phase === 'waiting_for_operator' && `Waiting for the operator: ${change.message}`,
  ].filter((words) => typeof words === 'string');
}

/** A small mark where the load generator's own error is noticeable, though it changes nothing. */
export function errorMark({ state, lane }: Live): { text: string; title: string } | undefined {
  if (state.status !== 'live' || !lane?.state.running) {
    return undefined;
  }
  const { client } = state.snapshot;
  const error = client.verdict === 'ok' || isWithheld(client) ? undefined : worst(client);
  return error && { text: `own error ≤ ${inMs(error.error_seconds)} (${metricName(error)})`, title: client.reason };
}

/** What was last known of the lane. */
export const knownOf = (live: Live) => lastKnown(live, LANE);
