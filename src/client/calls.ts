import { lanePath, type Client } from './client';
import type * as api from './types';

/** Starts a lane's workload. Without a concurrency it keeps the last one. */
export const startWorkload = (client: Client, lane: string, request: api.StartRequest): Promise<api.State> =>
  client.write('POST', lanePath('/workload/start', lane), request);
/** Stops a lane's workload: at once, or after the turns in flight have ended. */
export const stopWorkload = (client: Client, lane: string, drain: boolean): Promise<api.State> =>
  client.write('POST', lanePath('/workload/stop', lane), { drain });

/** Changes a lane's workload, running or not. */
export const patchWorkload = (client: Client, lane: string, patch: api.WorkloadPatch): Promise<api.State> =>
  client.write('PATCH', lanePath('/workload', lane), patch);

/** Begins a new step of a lane with unchanged settings, so that earlier turns no longer count. */
export const measureAnew = (client: Client, lane: string): Promise<api.State> =>
  client.write('POST', lanePath('/workload/measure', lane), {});

/** Begins a mode change. The live state reports its progress. */
export const changeMode = (client: Client, lane: string, request: api.ModeRequest): Promise<api.State> =>
  client.write('PUT', lanePath('/cluster/mode', lane), request);

/** Cancels the mode change in progress. */
export const cancelModeChange = (client: Client, lane: string): Promise<api.State> =>
  client.write('DELETE', lanePath('/cluster/mode', lane), undefined);

/** Returns the live step of a lane beside the given baseline. */
export const compareWith = (client: Client, lane: string, baseline: string): Promise<api.Comparison> =>
  client.get(lanePath(`/comparison?baseline=${encodeURIComponent(baseline)}`, lane));

/** Returns all baselines, requested page by page. */
export async function listBaselines(client: Client): Promise<api.Baseline[]> {
  const all: api.Baseline[] = [];
  for (let path = '/baselines'; ;) {
    const page = await client.get<{ baselines: api.Baseline[]; next_cursor?: string }>(path);
    all.push(...page.baselines);
    if (!page.next_cursor) {
      return all;
    }
    path = `/baselines?cursor=${encodeURIComponent(page.next_cursor)}`;
  }
}

/** A file to import as a baseline. */
export interface BaselineFile {
  text: string;
  format: 'csv' | 'json';
  /** The deployment of a CSV file or of another program's results. It replaces the deployment of a baseline in JSON. */
  name?: string;
  /** Replaces the name in the file. */
  title?: string;
  /** The routing mode of another program's results, which do not contain it. No other file has it. */
  mode?: api.Mode;
  /** The speculation of another program's results, which do not contain it. No other file has it. */
  speculation?: api.Speculation;
  /** Adds the rows to the imported baseline of this name, instead of replacing it. */
  merge?: boolean;
}

/**
 * Imports a baseline. It replaces an earlier import of its name, or is merged into it. A dry run stores nothing. The
 * result is the baseline as read.
 */
export function importBaseline(client: Client, file: BaselineFile, trial: boolean): Promise<api.Baseline> {
  const { name, title, mode, speculation, merge } = file;
  const query = queryOf({ name, title, mode, speculation, merge, dry_run: trial || undefined });
  const contentType = file.format === 'csv' ? 'text/csv' : 'application/json';
  return client.upload(`/baselines${query}`, file.text, contentType);
}

/** Deletes an imported baseline. */
export async function deleteBaseline(client: Client, name: string): Promise<void> {
  await client.write('DELETE', `/baselines/${encodeURIComponent(name)}`, undefined);
}

/** Returns the newest events of all lanes, newest first, at most as many as requested. */
export async function listEvents(client: Client, limit: number): Promise<api.BoothEvent[]> {
  return (await client.get<{ events: api.BoothEvent[] }>(`/events?limit=${limit}`)).events;
}

/** Returns the load generator's version, configuration and state. */
export const readStatus = (client: Client): Promise<api.Status> => client.get('/status');

/** Returns the series of a lane's last ten minutes, oldest first. */
export const readHistory = (client: Client, lane: string): Promise<api.History> =>
  client.get(lanePath('/history', lane));

/** Returns the newest decisions of a lane's router, newest first, at most as many as requested. */
export const listDecisions = (client: Client, lane: string, limit: number): Promise<api.DecisionList> =>
  client.get(lanePath(`/decisions?limit=${limit}`, lane));

/** Returns the settings in force. */
export const readSettings = (client: Client): Promise<api.Settings> => client.get('/settings');

/** Changes settings and returns those in force afterwards. */
export const patchSettings = (client: Client, patch: api.SettingsPatch): Promise<api.Settings> =>
  client.write('PATCH', '/settings', patch);

/** Selects conversations of the list. */
interface ConversationQuery {
  /** Those in progress at some time from … to, in milliseconds since 1970. */
  from?: number;
  to?: number;
  status?: api.ConversationStatus;
  /** A part of the topic; case does not matter. */
  topic?: string;
  /** The cursor that an earlier page returned for its next one. Without it, the page has the newest conversations. */
  cursor?: string;
  /** The page size, within conversations.limit. */
  limit: number;
}

/** Returns a page of a lane's conversations, newest first. */
export function listConversations(
  client: Client,
  lane: string,
  query: ConversationQuery
): Promise<api.ConversationList> {
  return client.get(lanePath(`/conversations${queryOf({ ...query })}`, lane));
}

/** Returns the address of a CSV file with all turns of a lane. */
export function turnsAddress(client: Client, lane: string): string {
  return client.address(lanePath('/turns.csv', lane));
}

/** Returns a conversation with its transcript. */
export const readConversation = (client: Client, id: string): Promise<api.Conversation> =>
  client.get(`/conversations/${encodeURIComponent(id)}`);

/** Returns the opening text of a topic, from the corpus that a lane uses. */
export const readStarter = (client: Client, lane: string, id: string): Promise<api.Starter> =>
  client.get(lanePath(`/starters/${encodeURIComponent(id)}`, lane));

/** Returns what can be simulated, and the simulations so far. */
export const listSimulations = (client: Client): Promise<api.SimulationList> => client.get('/simulations');

/** Requests a simulation. The server computes it after the answer. */
export const askSimulation = (client: Client, request: api.SimulationRequest): Promise<api.SimulationResult> =>
  client.write('POST', '/simulations', request);

/** Returns a simulation with its results so far. */
export const readSimulation = (client: Client, id: string): Promise<api.SimulationResult> =>
  client.get(`/simulations/${encodeURIComponent(id)}`);

/** Cancels a simulation. */
export async function cancelSimulation(client: Client, id: string): Promise<void> {
  await client.write('DELETE', `/simulations/${encodeURIComponent(id)}`, undefined);
}

/** Returns the cache hits that other routers would have had on a lane's traffic. */
export const readShadow = (client: Client, lane: string): Promise<api.Shadow> => client.get(lanePath('/shadow', lane));

/**
 * Returns the two lanes that run the same conversations. It rejects with a problem of status 404 where there is one
 * lane.
 */
export const readTwin = (client: Client): Promise<api.Twin> => client.get('/twin');

/** Assigns the modes to the two lanes in another way. Both are switched where needed, and pairs are counted anew. */
export const arrangeTwin = (client: Client, arranged: api.TwinArrangement): Promise<api.Twin> =>
  client.write('PATCH', '/twin', { arranged });

/** Sends one conversation to both lanes, turn by turn and outside all statistics. */
export const startShowcase = (client: Client): Promise<api.Twin> => client.write('POST', '/twin/showcase', {});

/** Ends the showcase in progress. */
export const stopShowcase = (client: Client): Promise<api.Twin> => client.write('DELETE', '/twin/showcase', undefined);

/** Returns the limits of trials, sweeps and capacity searches, and the list of those so far. */
export const listSweeps = (client: Client): Promise<api.SweepList> => client.get('/sweeps');

/**
 * Begins a trial, a sweep or a capacity search on a lane. It rejects with a problem of status 409 while another one is
 * in progress.
 */
export const startSweep = (client: Client, lane: string, request: api.SweepRequest): Promise<api.Sweep> =>
  client.write('POST', lanePath('/sweeps', lane), request);

/** Returns the difference that a trial would be able to find. It starts nothing. */
export const readOutlook = (client: Client, lane: string, request: api.SweepRequest): Promise<api.SweepOutlook> =>
  client.write('POST', lanePath('/sweeps/outlook', lane), request);

/** Returns what traffic would be. It sends nothing to the target. */
export const previewTraffic = (
  client: Client,
  lane: string,
  request: api.TrafficPreviewRequest
): Promise<api.TrafficPreview> => client.write('POST', lanePath('/traffic/preview', lane), request);

/** Returns a sweep with its measurements so far. */
export const readSweep = (client: Client, id: string): Promise<api.Sweep> => client.get(sweepPath(id));

/** Pauses, resumes or cancels a sweep. */
export const changeSweep = (
  client: Client,
  id: string,
  state: Extract<api.SweepState, 'paused' | 'running' | 'cancelled'>
): Promise<api.Sweep> => client.write('PATCH', sweepPath(id), { state });

/** Deletes a sweep that has ended, and returns the remaining ones. */
export const deleteSweep = (client: Client, id: string): Promise<api.SweepList> =>
  client.write('DELETE', sweepPath(id), undefined);

/** Makes a baseline of a sweep's measurements. */
export const makeBaseline = (client: Client, id: string, request: api.SweepBaselineRequest): Promise<api.Baseline> =>
  client.write('POST', sweepPath(id, '/baseline'), request);

/** Returns the history of runs, oldest first, with their series and what changed. */
export const listRuns = (client: Client): Promise<api.RunHistory> => client.get('/runs');

/** Sets whether later runs are compared with a run of the history. */
export const acceptRun = (client: Client, id: string, accepted: boolean): Promise<api.RunRecord> =>
  client.write('PATCH', `/runs/${encodeURIComponent(id)}`, { accepted });

/** Returns the address of a CSV file with the cluster's metrics in each second of a sweep's spans. */
export function secondsAddress(client: Client, id: string): string {
  return client.address(sweepPath(id, '/seconds.csv'));
}

/** The formats of a report. html is a page for a tab of its own, the others are files. */
export type ReportFormat = 'json' | 'tsv' | 'md' | 'html';

/** Returns the address of a sweep's report, for a link to open or to download it. */
export function sweepReportAddress(client: Client, id: string, format: ReportFormat): string {
  return client.address(sweepPath(id, `/report.${format}`));
}

/**
 * One of the two results that a report compares: a baseline in one mode. The mode may be omitted where there is only
 * one.
 */
export interface ReportSide {
  baseline: string;
  mode?: api.Mode;
  speculation?: api.Speculation;
}

/** Returns the address of the report that compares b with a, at some levels, such as "60,80", or at all. */
export function reportAddress(
  client: Client,
  a: ReportSide,
  b: ReportSide,
  format: ReportFormat,
  levels?: string
): string {
  const ofSide = (name: string, { baseline, mode, speculation }: ReportSide) => ({
    [name]: baseline,
    [`${name}_mode`]: mode,
    [`${name}_speculation`]: speculation,
  });
  return client.address(`/report.${format}${queryOf({ ...ofSide('a', a), ...ofSide('b', b), levels })}`);
}

/** Returns the query of parameters with its question mark, without those that are empty. */
function queryOf(params: Record<string, string | number | boolean | undefined>): string {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== '');
  const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return query && `?${query}`;
}

function sweepPath(id: string, part = ''): string {
  return `/sweeps/${encodeURIComponent(id)}${part}`;
}
