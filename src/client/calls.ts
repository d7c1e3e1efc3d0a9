import { lanePath, type Client } from './client';
import type {
  Baseline,
  BoothEvent,
  Comparison,
  Conversation,
  ConversationList,
  ConversationStatus,
  DecisionList,
  History,
  Mode,
  ModeRequest,
  Settings,
  SettingsPatch,
  Shadow,
  SimulationList,
  SimulationRequest,
  SimulationResult,
  Speculation,
  StartRequest,
  Starter,
  Status,
  State,
  Sweep,
  SweepBaselineRequest,
  SweepList,
  SweepOutlook,
  SweepRequest,
  SweepState,
  Twin,
  TwinArrangement,
  WorkloadPatch,
} from './types';

/** Starts a lane's workload; without a concurrency it keeps the last one. */
export function startWorkload(client: Client, lane: string, request: StartRequest): Promise<State> {
  return client.write('POST', lanePath('/workload/start', lane), request);
}

/** Stops a lane's workload: at once, or by letting the turns in flight end. */
export function stopWorkload(client: Client, lane: string, drain: boolean): Promise<State> {
  return client.write('POST', lanePath('/workload/stop', lane), { drain });
}

/** Changes a lane's workload, running or not. */
export function patchWorkload(client: Client, lane: string, patch: WorkloadPatch): Promise<State> {
  return client.write('PATCH', lanePath('/workload', lane), patch);
}

/** Begins a mode change. The live state reports its progress. */
export function changeMode(client: Client, lane: string, request: ModeRequest): Promise<State> {
  return client.write('PUT', lanePath('/cluster/mode', lane), request);
}

/** Gives up the mode change in progress. */
export function cancelModeChange(client: Client, lane: string): Promise<State> {
  return client.write('DELETE', lanePath('/cluster/mode', lane), undefined);
}

/** The live step of a lane beside a baseline of one's choice. */
export function compareWith(client: Client, lane: string, baseline: string): Promise<Comparison> {
  return client.get(lanePath(`/comparison?baseline=${encodeURIComponent(baseline)}`, lane));
}

/** All baselines, page by page. */
export async function listBaselines(client: Client): Promise<Baseline[]> {
  const all: Baseline[] = [];
  for (let path = '/baselines'; ;) {
    const page = await client.get<{ baselines: Baseline[]; next_cursor?: string }>(path);
    all.push(...page.baselines);
    if (!page.next_cursor) {
      return all;
    }
    path = `/baselines?cursor=${encodeURIComponent(page.next_cursor)}`;
  }
}

/** A file that is to become a baseline. */
export interface BaselineFile {
  text: string;
  format: 'csv' | 'json';
  /** Of a CSV file or one of another program; a baseline in JSON has its own, which this replaces. */
  name?: string;
  /** In place of the file's own. */
  title?: string;
  /** Of another program's results, which do not say it; not of any other file. */
  mode?: Mode;
  /** Likewise. */
  speculation?: Speculation;
  /** Its rows are added to the imported baseline of its name, in place of replacing it. */
  merge?: boolean;
}

/**
 * Imports a baseline, in place of an earlier import of its name or into it; a trial stores nothing. It gives what was
 * read.
 */
export function importBaseline(client: Client, file: BaselineFile, trial: boolean): Promise<Baseline> {
  const params = new URLSearchParams({
    ...(file.name && { name: file.name }),
    ...(file.title && { title: file.title }),
    ...(file.mode && { mode: file.mode }),
    ...(file.speculation && { speculation: file.speculation }),
    ...(file.merge && { merge: 'true' }),
    ...(trial && { dry_run: 'true' }),
  }).toString();
  const contentType = file.format === 'csv' ? 'text/csv' : 'application/json';
  return client.upload(`/baselines${params && '?'}${params}`, file.text, contentType);
}

/** Deletes an imported baseline. */
export async function deleteBaseline(client: Client, name: string): Promise<void> {
  await client.write('DELETE', `/baselines/${encodeURIComponent(name)}`, undefined);
}

/** The newest events of all lanes, so many at most, newest first. */
export async function listEvents(client: Client, limit: number): Promise<BoothEvent[]> {
  return (await client.get<{ events: BoothEvent[] }>(`/events?limit=${limit}`)).events;
}

/** What the load generator says of itself and its configuration. */
export function readStatus(client: Client): Promise<Status> {
  return client.get('/status');
}

/** What a lane's snapshots said in the last ten minutes, oldest first. */
export function readHistory(client: Client, lane: string): Promise<History> {
  return client.get(lanePath('/history', lane));
}

/** The newest decisions of a lane's router, so many at most, newest first. */
export function listDecisions(client: Client, lane: string, limit: number): Promise<DecisionList> {
  return client.get(lanePath(`/decisions?limit=${limit}`, lane));
}

/** The settings in force. */
export function readSettings(client: Client): Promise<Settings> {
  return client.get('/settings');
}

/** Changes settings, and gives those then in force. */
export function patchSettings(client: Client, patch: SettingsPatch): Promise<Settings> {
  return client.write('PATCH', '/settings', patch);
}

/** Which conversations are wanted. */
interface ConversationQuery {
  status?: ConversationStatus;
  /** A part of the topic, in whatever case. */
  topic?: string;
  /** What a page before gave as its next one; the newest without it. */
  cursor?: string;
  /** How many at once, within the limit of conversations.limit. */
  limit: number;
}

/** A page of a lane's conversations, newest first. */
export function listConversations(client: Client, lane: string, query: ConversationQuery): Promise<ConversationList> {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const params = given.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&');
  return client.get(lanePath(`/conversations?${params}`, lane));
}

/** Where all turns of a lane are, as a CSV file. */
export function turnsAddress(client: Client, lane: string): string {
  return client.address(lanePath('/turns.csv', lane));
}

/** A conversation with its transcript. */
export function readConversation(client: Client, id: string): Promise<Conversation> {
  return client.get(`/conversations/${encodeURIComponent(id)}`);
}

/** The text that conversations on it begin with, as the corpus in use in a lane has it. */
export function readStarter(client: Client, lane: string, id: string): Promise<Starter> {
  return client.get(lanePath(`/starters/${encodeURIComponent(id)}`, lane));
}

/** What can be simulated, and what has been. */
export function listSimulations(client: Client): Promise<SimulationList> {
  return client.get('/simulations');
}

/** Asks for a simulation, which is then computed. */
export function askSimulation(client: Client, request: SimulationRequest): Promise<SimulationResult> {
  return client.write('POST', '/simulations', request);
}

/** A simulation with what it has computed so far. */
export function readSimulation(client: Client, id: string): Promise<SimulationResult> {
  return client.get(`/simulations/${encodeURIComponent(id)}`);
}

/** Ends the computing of a simulation. */
export async function cancelSimulation(client: Client, id: string): Promise<void> {
  await client.write('DELETE', `/simulations/${encodeURIComponent(id)}`, undefined);
}

/** What other routers would have hit on a lane's traffic. */
export function readShadow(client: Client, lane: string): Promise<Shadow> {
  return client.get(lanePath('/shadow', lane));
}

/** The two lanes that run the same conversations; a problem of status 404 where there is one lane. */
export function readTwin(client: Client): Promise<Twin> {
  return client.get('/twin');
}

/** Deals the modes out to the two lanes in another way: they are switched, and pairs are counted anew. */
export function arrangeTwin(client: Client, arranged: TwinArrangement): Promise<Twin> {
  return client.write('PATCH', '/twin', { arranged });
}

/** Sends one conversation to both lanes, turn by turn and outside all statistics. */
export function startShowcase(client: Client): Promise<Twin> {
  return client.write('POST', '/twin/showcase', {});
}

/** Ends the showcase under way. */
export function stopShowcase(client: Client): Promise<Twin> {
  return client.write('DELETE', '/twin/showcase', undefined);
}

/** What can be asked of trials, sweeps and capacity searches, and what has been. */
export function listSweeps(client: Client): Promise<SweepList> {
  return client.get('/sweeps');
}

/** Begins a trial, a sweep or a capacity search on a lane; a problem of status 409 while another one is in progress. */
export function startSweep(client: Client, lane: string, request: SweepRequest): Promise<Sweep> {
  return client.write('POST', lanePath('/sweeps', lane), request);
}

/** What a trial can find that is not begun. */
export function readOutlook(client: Client, lane: string, request: SweepRequest): Promise<SweepOutlook> {
  return client.write('POST', lanePath('/sweeps/outlook', lane), request);
}

/** A sweep with what it has measured so far. */
export function readSweep(client: Client, id: string): Promise<Sweep> {
  return client.get(sweepPath(id));
}

/** Pauses, resumes or cancels a sweep. */
export function changeSweep(
  client: Client,
  id: string,
  state: Extract<SweepState, 'paused' | 'running' | 'cancelled'>
): Promise<Sweep> {
  return client.write('PATCH', sweepPath(id), { state });
}

/** Deletes a sweep that has ended, and gives what is left. */
export function deleteSweep(client: Client, id: string): Promise<SweepList> {
  return client.write('DELETE', sweepPath(id), undefined);
}

/** Makes a baseline of what a sweep has measured. */
export function makeBaseline(client: Client, id: string, request: SweepBaselineRequest): Promise<Baseline> {
  return client.write('POST', sweepPath(id, '/baseline'), request);
}

/** Where is, as a CSV file, what the cluster said of itself in each second of a sweep's spans. */
export function secondsAddress(client: Client, id: string): string {
  return client.address(sweepPath(id, '/seconds.csv'));
}

/** What a report can be had as; html is one page for a tab of its own, the others are files. */
export type ReportFormat = 'json' | 'tsv' | 'md' | 'html';

/** Where the report of a sweep is, for a link to open or to download it. */
export function sweepReportAddress(client: Client, id: string, format: ReportFormat): string {
  return client.address(sweepPath(id, `/report.${format}`));
}

/** One of the two results that a report compares: a baseline in one mode, its only one unless named. */
export interface ReportSide {
  baseline: string;
  mode?: Mode;
  speculation?: Speculation;
}

/** Where the report on any two results is: b compared with a. */
export function reportAddress(client: Client, a: ReportSide, b: ReportSide, format: ReportFormat): string {
  const params = new URLSearchParams();
  for (const [name, side] of Object.entries({ a, b })) {
    params.set(name, side.baseline);
    if (side.mode) {
      params.set(`${name}_mode`, side.mode);
    }
    if (side.speculation) {
      params.set(`${name}_speculation`, side.speculation);
    }
  }
  return client.address(`/report.${format}?${params.toString()}`);
}

function sweepPath(id: string, part = ''): string {
  return `/sweeps/${encodeURIComponent(id)}${part}`;
}
