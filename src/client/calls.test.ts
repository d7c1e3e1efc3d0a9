import { config } from '@grafana/runtime';

import {
  changeSweep,
  deleteSweep,
  listBaselines,
  listSweeps,
  makeBaseline,
  readSweep,
  reportAddress,
  secondsAddress,
  startSweep,
  sweepReportAddress,
} from './calls';
import type { Client } from './client';
import { grafanaClient } from './grafana';
import { standaloneClient } from './standalone';

/** Returns a client that records its calls and answers each with its path. */
function recorder() {
  const calls: unknown[][] = [];
  const note = (...call: unknown[]) => {
    calls.push(call);
    return Promise.resolve({ id: 'a1' });
  };
  const client = { get: (path: string) => note('GET', path), write: note } as unknown as Client;
  return { client, calls };
}

describe('the calls of sweeps', () => {
  it('are those of the API', async () => {
    const { client, calls } = recorder();
    const request = { kind: 'trial' as const, levels: [120] };
    await listSweeps(client);
    await expect(startSweep(client, 'a lane', request)).resolves.toEqual({ id: 'a1' });
    await readSweep(client, 'a/1');
    await changeSweep(client, 'a1', 'paused');
    await makeBaseline(client, 'a1', { name: 'ours' });
    await deleteSweep(client, 'a1');
    expect(calls).toEqual([
      ['GET', '/sweeps'],
      ['POST', '/sweeps?lane=a%20lane', request],
      ['GET', '/sweeps/a%2F1'],
      ['PATCH', '/sweeps/a1', { state: 'paused' }],
      ['POST', '/sweeps/a1/baseline', { name: 'ours' }],
      ['DELETE', '/sweeps/a1', undefined],
    ]);
  });
});

describe('the list of baselines', () => {
  it('is read page by page', async () => {
    const pages: Record<string, object> = {
      '/baselines': { baselines: [{ name: 'a' }, { name: 'b+c' }], next_cursor: 'b+c' },
      '/baselines?cursor=b%2Bc': { baselines: [{ name: 'd' }] },
    };
    const client = { get: (path: string) => Promise.resolve(pages[path]) } as unknown as Client;
    expect((await listBaselines(client)).map(({ name }) => name)).toEqual(['a', 'b+c', 'd']);
  });
});

describe('the addresses of reports', () => {
  const a = { baseline: 'of 2026+1', mode: 'round_robin' as const, speculation: 'off' as const };
  const b = { baseline: 'this target' };

  it('lead directly to the load generator that served the page', () => {
    const client = standaloneClient();
    expect(sweepReportAddress(client, 'a/1', 'html')).toBe('/api/v1/sweeps/a%2F1/report.html');
    expect(secondsAddress(client, 'a1')).toBe('/api/v1/sweeps/a1/seconds.csv');
    const compared = new URL(reportAddress(client, a, b, 'tsv'), 'http://localhost');
    expect(compared.pathname).toBe('/api/v1/report.tsv');
    expect(Object.fromEntries(compared.searchParams)).toEqual({
      a: 'of 2026+1',
      a_mode: 'round_robin',
      a_speculation: 'off',
      b: 'this target',
    });
  });

  it('lead through the app where Grafana has a path of its own', () => {
    const before = config.appSubUrl;
    config.appSubUrl = '/grafana';
    const resources = '/grafana/api/plugins/kvbooth-inference-app/resources';
    expect(sweepReportAddress(grafanaClient, 'a1', 'md')).toBe(`${resources}/sweeps/a1/report.md`);
    expect(reportAddress(grafanaClient, b, b, 'html')).toBe(`${resources}/report.html?a=this+target&b=this+target`);
    config.appSubUrl = before;
  });
});
