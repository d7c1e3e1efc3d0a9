/**
 * The booth as journeys access it outside the browser: the load generator's API, and the processes that a journey may
 * kill and restart.
 */
import { expect } from '@playwright/test';

/** The settings of the Go test from the environment. Without a Grafana there are no users, and no password. */
export const env = {
  grafana: process.env.GRAFANA_URL ?? '',
  loadgen: required('LOADGEN_URL'),
  token: process.env.LOADGEN_TOKEN ?? '',
  control: required('CONTROL_URL'),
  target: process.env.TARGET_URL,
  password: process.env.PASSWORD ?? '',
  /** The folder of pictures. */
  results: required('RESULTS'),
  /** Whether to measure for the duration of a benchmark. */
  bench: process.env.BENCH === '1',
};

function required(name) {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set: run the tests with "go tool mage test"`);
  }
  return value;
}

const SECOND = 1000;

/**
 * Waits until a condition returns a true value, and returns that. Except for Playwright's own expectations, journeys
 * wait only by this function. A condition that throws is retried. The error has the last state, which is the
 * condition's last result or error.
 */
export async function eventually(what, condition, { within = 60 * SECOND } = {}) {
  let state;
  const holds = async () => {
    try {
      state = await condition();
    } catch (error) {
      state = error;
      return false;
    }
    return Boolean(state);
  };
  try {
    await expect.poll(holds, { message: what, timeout: within, intervals: [50, 100] }).toBe(true);
  } catch {
    const last = state instanceof Error ? state.message : JSON.stringify(state);
    throw new Error(`${what}: not so within ${within / SECOND} s; last state: ${last}`);
  }
  return state;
}

/** Calls the load generator's API and returns the answer. */
export async function call(method, path, body) {
  const answer = await fetch(env.loadgen + path, {
    method,
    headers: {
      ...(env.token && { Authorization: `Bearer ${env.token}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(10 * SECOND),
  });
  if (!answer.ok) {
    throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  }
  return answer.json();
}

/** Calls Grafana's API as its administrator, and returns the answer. */
export function grafanaCall(method, path, body) {
  const authorization = `Basic ${Buffer.from(`admin:${env.password}`).toString('base64')}`;
  const headers = { Authorization: authorization, 'Content-Type': 'application/json' };
  return fetch(env.grafana + path, { method, headers, body: body && JSON.stringify(body) });
}

/** Adds the user editor or viewer, with the role of that name, where there is none. */
export async function addUser(login) {
  const added = await grafanaCall('POST', '/api/admin/users', { login, password: env.password });
  if (added.ok) {
    const role = login === 'editor' ? 'Editor' : 'Viewer';
    await grafanaCall('PATCH', `/api/org/users/${(await added.json()).id}`, { role });
  }
}

/** The lane of the tests, from its status. */
export async function lane() {
  const status = await call('GET', '/api/v1/status');
  return status.lanes[0];
}

/** The newest events, newest first. */
export async function events() {
  return (await call('GET', '/api/v1/events?limit=100')).events;
}

/** Waits for an event that is newer than another one and satisfies the condition. */
export function eventAfter(before, what, wanted) {
  return eventually(`event: ${what}`, async () =>
    (await events()).find((event) => BigInt(event.id) > BigInt(before) && wanted(event))
  );
}

/** The id of the newest event. */
export async function newestEvent() {
  return (await events())[0]?.id ?? '0';
}

/** Waits until the lane's state satisfies the condition, and returns it. */
export function stateUntil(what, wanted, options) {
  return eventually(
    what,
    async () => {
      const { state } = await lane();
      return wanted(state) && state;
    },
    options
  );
}

/** Starts the workload, or sets a running one's concurrency. */
export async function start(concurrency = 60) {
  await call('POST', '/api/v1/workload/start', { concurrency });
}

/** Stops the workload, cancels its answers in progress, and waits for that. */
export async function stop() {
  await call('POST', '/api/v1/workload/stop', { drain: false });
  await stateUntil('stopped', ({ phase }) => phase === 'stopped');
}

/** Resets the booth to the state in which every journey begins: all parts up, stopped, at 60 on ten texts under kv. */
export async function atRest() {
  await startPart('loadgen');
  await startPart('prometheus');
  const { state } = await eventually('the target is reached', async () => {
    const now = await lane();
    return now.target.reachable && now.state.phase !== 'switching' && now;
  });
  if (state.mode !== 'kv') {
    await call('PUT', '/api/v1/cluster/mode', { mode: 'kv' });
    await stateUntil('mode kv', ({ mode, phase }) => mode === 'kv' && phase !== 'switching');
  }
  await stop();
  await call('PATCH', '/api/v1/workload', {
    concurrency: 60,
    openings: 10,
    target_rps: 25,
    turns: { min: 3, max: 5 },
  });
}

/** Waits for the first finished turn since the last start, and returns the time. */
export async function firstTurn() {
  await eventually('a finished turn', async () => (await lane()).totals.ok > 0);
  return Date.now();
}

/** Sets the ratios of requests that the simulated cluster fails: http_500 and others. */
export async function faults(shares) {
  const answer = await fetch(`${env.target}/sim/v1/faults`, {
    method: 'PUT',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(shares),
  });
  expect(answer.ok, `faults: ${answer.status}`).toBe(true);
}

/** Kills a part of the booth like a crash: loadgen, prometheus. */
export const killPart = (name) => control(name, 'kill');

/** Restarts a part, and resolves once it serves. */
export const startPart = (name) => control(name, 'start');

async function control(name, what) {
  const answer = await fetch(`${env.control}/${name}/${what}`, { method: 'POST' });
  if (!answer.ok) {
    throw new Error(`${what} ${name}: ${await answer.text()}`);
  }
}
