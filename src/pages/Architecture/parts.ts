import type { LaneSnapshot, Worker } from '../../client';
import type { TargetFacts } from '../../components/Diagram';
import { DASH, milliseconds, NOT_REPORTED, number, percent, seconds } from '../../lib/format';
import { modeName, modeSource, otherRouter, servingName } from '../../lib/names';
import { whyUnread } from '../../lib/unread';
import { unlisted, workerCount } from '../../lib/workers';
import texts from './parts.json';

/** One number of a part. */
export interface Figure {
  name: string;
  value: string;
  /** The same number from 0 to 1, where it is a ratio. */
  share?: number;
  source: string;
}

/** Whether a part exists in the running system. */
export interface Presence {
  is: 'here' | 'configured' | 'idle' | 'absent' | 'unknown';
  /** Why it is absent or only assumed. */
  why?: string;
}

/** A part of the drawing with all its texts. */
export interface Part {
  id: string;
  title: string;
  text: string;
  /** The most important number first. */
  figures: Figure[];
  presence: Presence;
}

/** All texts of the drawing of the request path. */
export type RequestPath = ReturnType<typeof requestPath>;

/** The parts in the order of a presentation. */
export function inOrder({ workers, ...p }: RequestPath): Part[] {
  return [p.client, p.enduser, p.frontend, p.router, ...workers, p.request, p.discovery, p.events, p.prometheus];
}

/** The source of the load generator's figures, which cover the last 60 s. */
const BY_CLIENT = 'Measured by the load generator over the last 60 s.';
const HERE: Presence = { is: 'here' };

/** Describes the source of the cluster's numbers. */
function clusterSource(lane: LaneSnapshot | undefined): string {
  return lane?.cluster.source === 'direct' ? 'Read from the target’s own metrics.' : 'Read from Prometheus.';
}

/**
 * Fills the parts of the drawing. The lane determines which parts exist, and may be the last known one. Without live,
 * every number is a dash.
 */
export function requestPath(lane: LaneSnapshot | undefined, live: boolean, target: TargetFacts) {
  const now = live ? lane : undefined;
  return {
    client: clientPart(now),
    enduser: enduserPart(target),
    frontend: frontendPart(lane, now),
    router: routerPart(lane, now, target),
    discovery: discoveryPart(now, target),
    request: requestPart(now, target),
    events: eventsPart(lane, now, target),
    prometheus: prometheusPart(lane, now),
    workers: (lane?.cluster.workers ?? []).map((w) => workerPart(w, now)),
    /** How many workers are not drawn, in words. */
    more: lane && unlisted(lane.cluster),
  };
}

function clientPart(now: LaneSnapshot | undefined): Part {
  const w = now?.window;
  return {
    ...texts.client,
    figures: [
      { name: 'requests/s', value: number(w?.requests_per_second, 2), source: `Completed requests. ${BY_CLIENT}` },
      {
        name: 'in progress',
        value: number(now?.state.concurrency.actual),
        source: 'Conversations, counted by the load generator.',
      },
      {
        name: 'waiting for first token',
        value: number(w?.awaiting.n),
        source: 'Requests, counted by the load generator.',
      },
      { name: 'TTFT p95', value: milliseconds(w?.metrics.ttft.p95), source: BY_CLIENT },
      { name: 'output tokens/s', value: number(w?.output_tokens_per_second), source: BY_CLIENT },
    ],
    presence: HERE,
  };
}

function enduserPart({ questioner, followup }: TargetFacts): Part {
  return {
    ...texts.enduser,
    figures: [],
    presence:
      questioner === undefined
        ? { is: 'unknown', why: 'The load generator does not report where follow-up questions come from.' }
        : questioner !== 'model'
          ? { is: 'absent', why: `No end-user model here. Follow-up questions come from: ${followup}.` }
          : { is: 'here', why: `Follow-up questions come from: ${followup}.` },
  };
}

function frontendPart(lane: LaneSnapshot | undefined, now: LaneSnapshot | undefined): Part {
  const c = now?.cluster;
  const other = otherRouter(lane?.target.router);
  return {
    id: 'frontend',
    title: 'Frontend',
    text:
      other !== undefined
        ? `The OpenAI-compatible entry point of the cluster, which is part of ${other} here.`
        : 'The OpenAI-compatible entry point of the cluster: it applies the chat template, ' +
          'tokenizes the prompt, passes the request to the router and streams the answer back.',
    figures: [
      {
        name: 'queued',
        value: number(c?.queued_router),
        source: `Requests without a first token at a Dynamo frontend, or waiting at a router. ${clusterSource(now)}`,
      },
      { name: 'in flight', value: number(c?.inflight), source: `Requests, of all workers. ${clusterSource(now)}` },
    ],
    presence: HERE,
  };
}

function routerPart(lane: LaneSnapshot | undefined, now: LaneSnapshot | undefined, { kind }: TargetFacts): Part {
  const kv = now?.kv;
  const bySource: Record<string, string> = {
    frontend: 'From the frontend’s metrics',
    engine: 'From the engines’ own counters',
  };
  const other = otherRouter(lane?.target.router);
  const source = bySource[kv?.source ?? ''] ?? 'Cached tokens / prompt tokens, as reported with each answer';
  return {
    id: 'router',
    title: other ?? 'Router',
    text:
      other !== undefined
        ? 'The router, recognized by its answers, its metrics or the setting target.router. It chooses a worker for ' +
          'every request by its own policy.'
        : 'Chooses a worker for every request. KV-aware routing weighs how much of the prompt a ' +
          'worker has cached against how busy it is; round-robin takes the next worker in order.',
    figures: [
      {
        name: 'KV hit rate',
        value: kv?.not_reported ? NOT_REPORTED : percent(kv?.hit_ratio),
        source: kv?.not_reported ? `Not reported: ${kv.not_reported}.` : `${source}, over the last 60 s.`,
      },
      { name: 'mode', value: now ? servingName(now.state) : DASH, source: modeNote(now) },
      { name: 'predicted', value: percent(kv?.predicted), source: 'The hit rate the router predicted.' },
      {
        name: 'achievable',
        value: percent(kv?.achievable),
        source: 'If every turn had gone to the worker with the longest cached prefix.',
      },
    ],
    presence:
      kind === 'plain' && lane?.cluster.workers.length === 0
        ? { is: 'unknown', why: 'This server does not report whether it has a router.' }
        : HERE,
  };
}

/** The source of the mode, as a sentence. */
function modeNote(now: LaneSnapshot | undefined): string {
  if (now?.state.mode === 'unknown') {
    return 'Unknown: neither an operator nor this server has reported it.';
  }
  const source = now ? modeSource(now.state) : 'the mode driver';
  return `Reported by ${source}.`;
}

function discoveryPart(now: LaneSnapshot | undefined, { kind }: TargetFacts): Part {
  const workers = now?.cluster.available ? workerCount(now.cluster) : undefined;
  return {
    ...texts.discovery,
    figures: [
      { name: 'workers found', value: number(workers), source: clusterSource(now) },
      ...carrier('discovery', now, kind),
    ],
    presence:
      kind === 'simulated'
        ? { is: 'absent', why: 'The simulated cluster gets its workers at start-up; no discovery is needed.' }
        : planePresence(kind),
  };
}

function requestPart(now: LaneSnapshot | undefined, { kind }: TargetFacts): Part {
  return {
    ...texts.request,
    figures: [
      { name: 'in flight', value: number(now?.cluster.inflight), source: clusterSource(now) },
      ...carrier('request', now, kind),
    ],
    presence:
      kind === 'simulated'
        ? { is: 'here', why: 'Simulated: frontend and workers share one process, with no network between them.' }
        : planePresence(kind),
  };
}

function eventsPart(lane: LaneSnapshot | undefined, now: LaneSnapshot | undefined, { kind }: TargetFacts): Part {
  const why = kind === 'simulated' ? 'Simulated: the events pass inside one process.' : undefined;
  const mode = lane?.state.mode;
  return {
    ...texts.events,
    figures: carrier('events', now, kind),
    presence:
      mode !== undefined && mode !== 'kv'
        ? mode === 'unknown'
          ? {
              is: 'unknown',
              why: 'The routing mode of this server is unknown, so it is unknown whether it uses these events.',
            }
          : { is: 'idle', why: `${modeName(mode)} routing does not use these events.` }
        : kind === 'simulated'
          ? { is: 'here', why }
          : planePresence(kind),
  };
}

/** The transport of each plane of a Dynamo that this product starts on one machine. */
const ON_ONE_MACHINE = { discovery: 'files', request: 'TCP', events: 'ZMQ' };

/** The transport of a plane; undefined where the target does not report it. */
function carrier(
  plane: keyof typeof ON_ONE_MACHINE,
  now: LaneSnapshot | undefined,
  kind: TargetFacts['kind']
): Figure[] {
  if (now?.state.driver === 'kubernetes') {
    const source = 'As set up by the Dynamo operator on Kubernetes.';
    return plane === 'discovery' ? [{ name: 'registry', value: 'CRDs and EndpointSlices', source }] : [];
  }
  if (!now || kind !== 'mock') {
    return [];
  }
  const name = plane === 'discovery' ? 'registry' : 'transport';
  const source = 'As set up by KV Booth for a Dynamo with mock workers on one machine.';
  return [{ name, value: ON_ONE_MACHINE[plane], source }];
}

function planePresence(kind: TargetFacts['kind']): Presence {
  return kind === 'mock' || kind === 'dynamo'
    ? HERE
    : { is: 'unknown', why: 'This target does not expose how its parts communicate.' };
}

function prometheusPart(lane: LaneSnapshot | undefined, now: LaneSnapshot | undefined): Part {
  const source = lane?.cluster.source;
  const age = now?.cluster.available ? now.cluster.age_seconds : undefined;
  return {
    ...texts.prometheus,
    figures: [{ name: 'since last read', value: seconds(age), source: 'By the load generator’s clock.' }],
    presence:
      source === 'prometheus'
        ? HERE
        : source === 'direct'
          ? { is: 'absent', why: 'Not in use: the load generator reads the target’s metrics itself.' }
          : { is: 'unknown', why: lane?.cluster.problem ?? 'The load generator reads no cluster metrics.' },
  };
}

function shareOf(name: string, share: number | undefined, source: string): Figure {
  return { name, value: percent(share), share, source };
}

function workerPart(worker: Worker, now: LaneSnapshot | undefined): Part {
  const w = now ? worker : undefined;
  const why = now && whyUnread(now.cluster, 'workers');
  const source = why ? `Not read: ${why}.` : clusterSource(now);
  return {
    id: `worker-${worker.id}`,
    title: worker.name,
    text:
      'One engine with its GPU. It prefills the part of the prompt that is not in its cache, ' +
      'then decodes token by token, many requests in parallel.',
    figures: [
      { name: 'in flight', value: number(w?.inflight), source: `Requests. ${source}` },
      { name: 'waiting', value: number(w?.waiting), source: `Requests in the engine’s queue. ${source}` },
      shareOf('KV cache', w?.cache_use, `Blocks in use. ${source}`),
      shareOf('GPU', utilization(w), `Utilization, the mean of its GPUs. ${source}`),
      { name: 'queue time', value: milliseconds(w?.queue_seconds), source: `Mean over 60 s. ${source}` },
      { name: 'routed to it', value: number(w?.routed), source: `Requests so far. ${source}` },
    ],
    presence: HERE,
  };
}

/** The mean utilization of a worker's GPUs, 0 to 1; undefined where none reports it. */
export function utilization(worker: Worker | undefined): number | undefined {
  const reported = (worker?.gpus ?? []).flatMap((g) => (g.utilisation === undefined ? [] : [g.utilisation]));
  return reported.length === 0 ? undefined : reported.reduce((a, b) => a + b, 0) / reported.length;
}

/** A part and its numbers in one sentence, for the list. */
export function sentenceOf({ title, figures, presence }: Part): string {
  const numbers = figures.map(({ name, value }) => `${value === DASH ? 'not reported' : value} ${name}`);
  return [title, presenceWord(presence), ...numbers].filter(Boolean).join(', ');
}

/** A word for a part that is absent or only assumed. */
export function presenceWord({ is }: Presence): string | undefined {
  switch (is) {
    case 'configured':
      return 'as configured';
    case 'absent':
      return 'not here';
    case 'idle':
      return 'not used';
    case 'unknown':
      return 'not known';
    case 'here':
      return undefined;
  }
}
