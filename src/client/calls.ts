import { lanePath, type Client } from './client';
import type {
  Baseline,
  Comparison,
  Conversation,
  ConversationList,
  ConversationStatus,
  DecisionList,
  ModeRequest,
  Settings,
  SettingsPatch,
  StartRequest,
  Starter,
  Status,
  State,
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

/** Begins a mode change; the live state tells how it goes on. */
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

/** All baselines. */
export async function listBaselines(client: Client): Promise<Baseline[]> {
  return (await client.get<{ baselines: Baseline[] }>('/baselines')).baselines;
}

/** What the load generator says of itself and its configuration. */
export function readStatus(client: Client): Promise<Status> {
  return client.get('/status');
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
export interface ConversationQuery {
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

/** A conversation with its transcript. */
export function readConversation(client: Client, id: string): Promise<Conversation> {
  return client.get(`/conversations/${encodeURIComponent(id)}`);
}

/** The text that conversations on it begin with, as the corpus in use in a lane has it. */
export function readStarter(client: Client, lane: string, id: string): Promise<Starter> {
  return client.get(lanePath(`/starters/${encodeURIComponent(id)}`, lane));
}
