import { useState } from 'react';
import { act, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { Problem, type Baseline, type BaselineRow } from '../../client';
import { violations } from '../../test/axe';
import { emptyRow as row, FakeClient, improved, laneSnapshot, settings, type LaneChange } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { settled } from '../../test/settled';
import { stubSizes } from '../../test/sizes';
import { Benchmark } from './Benchmark';
import { defaultBaseline, gainOf, liveValues, toBenchmark, toCurves } from './model';

beforeEach(() => stubSizes());
afterEach(() => jest.restoreAllMocks());

const row60 = (mode: BaselineRow['mode'], ttft: number, tpot: number, change: Partial<BaselineRow>) =>
  row(60, mode, { ttft: { p95: ttft }, tpot_derived: { p95: tpot }, ...change });

const recorded: Baseline = {
  name: 'recorded',
  title: '3× H200, recorded',
  kind: 'recorded',
  deployment: {},
  advantages: [
    {
      concurrency: 60,
      speculation: 'not_recorded',
      of: { ttft_p95: improved(32), output_tokens_per_second: improved(5.4, false) },
    },
    { concurrency: 120, speculation: 'not_recorded', of: { ttft_p95: improved(-125.3) } },
  ],
  rows: [
    row(40, 'kv', { ttft: { p95: 0.4465 } }),
    row60('round_robin', 0.6554, 0.036, { output_tokens_per_second: 2146.9, error_ratio: 0.02 }),
    row60('kv', 0.4458, 0.031, { output_tokens_per_second: 2262.8, error_ratio: 0.01 }),
    row(120, 'round_robin', { ttft: { p95: 0.5573 } }),
    row(120, 'kv', { ttft: { p95: 1.2555 } }),
    row(120, 'least_loaded', { ttft: { p95: 9 } }),
    row(125, 'kv', { ttft: { p95: 0.5 } }),
  ],
};
const other: Baseline = {
  ...recorded,
  name: 'other',
  title: '8× H100, recorded',
  provenance: {
    runs: [{ file: 'a.tsv', date: '2026-02-17T12:52:00Z' }, { file: 'b.tsv' }],
    region: 'ams3',
    between_modes: 'the frontend was restarted',
  },
  workload: { turns: { min: 5, max: 5 }, max_tokens: 1024, target_rps: 25 },
  rows: [row(80, 'round_robin', { ttft: { p95: 0.9 } })],
};

function Chosen() {
  return <Benchmark lane="main" choice={useState<string>()} levels={useState<string>()} />;
}

async function show(baselines: Baseline[] | Problem = [recorded, other], lane: LaneChange = {}) {
  const client = new FakeClient();
  client.show(lane, { settings: settings({ default_baseline: 'recorded' }) });
  client.reads.mockImplementation(() =>
    baselines instanceof Problem ? Promise.reject(baselines) : Promise.resolve({ baselines })
  );
  const result = renderWith(client, <Chosen />);
  await settled(client, '/baselines');
  return result;
}

const heads = (name: 'latencies' | 'rates') =>
  texts(
    within(screen.getByRole('table', { name: new RegExp(`${name} level by level$`) }))
      .getAllByRole('columnheader')
      .filter((head) => head.getAttribute('scope') !== 'col')
  );
const rows = (name: 'latencies' | 'rates' = 'latencies') =>
  within(screen.getByRole('table', { name: new RegExp(`${name} level by level$`) }))
    .getAllByRole('row')
    .slice(2);
const shown = (name?: 'latencies' | 'rates') =>
  rows(name).map((r) => Array.from(r.children).map((cell) => cell.textContent?.trim()));

describe('the recorded benchmark', () => {
  it('has a row for each level of the slider, with the recorded values', async () => {
    const { container } = await show();
    expect(heads('latencies')).toEqual(['TTFT p95, ms', 'TPOT p95, ms derived']);
    expect(heads('rates')).toEqual(['Output tokens/s', 'Errors, %']);
    const [met, near, missed] = ['✓meets the SLO', '!meets the SLO, but is near it', '✕misses the SLO'];
    expect(shown()).toEqual([
      ['60', `655 ${missed}`, `446 ${met}`, '+32.0 %', `36.0 ${met}`, `31.0 ${met}`, '+13.9 % not judged'],
      ['120live now', `557 ${near}`, `1,256 ${missed}`, '2.3 times as long', 'not recorded', 'not recorded', '—'],
    ]);
    expect(shown('rates')).toEqual([
      ['60', '2,147', '2,263', '+5.4 % not certain', '2.0', '1.0', '+50.0 % not judged'],
      ['120live now', 'not recorded', 'not recorded', '—', 'not recorded', 'not recorded', '—'],
    ]);
    expect(
      screen.getByText(
        /: TTFT mean, TTFT p50, TPOT p95, End-to-end latency p50, End-to-end latency p95, Requests\/s, KV hit rate\./
      )
    ).toBeInTheDocument();
    expect(rows()[1]).toHaveAttribute('aria-current', 'true');
    expect(screen.getAllByTitle(/computed from other percentiles/)).toHaveLength(2);
    expect(await violations(container)).toEqual([]);
  });

  it('shows the concurrency of the workload where it is no level, or none where nothing runs', async () => {
    const { client } = await show(undefined, { state: { concurrency: { target: 97, actual: 97 } } });
    expect(screen.getByText(/runs at 97, which is not one of these levels/)).toBeInTheDocument();
    act(() => client.show({ state: { running: false, phase: 'stopped' } }));
    expect(screen.queryByText(/not one of/)).not.toBeInTheDocument();
    expect(screen.queryByText('live now')).not.toBeInTheDocument();
  });

  it('shows another baseline on request', async () => {
    await show();
    await userEvent.click(screen.getByRole('combobox', { name: 'Baseline' }));
    await userEvent.click(await screen.findByRole('option', { name: '8× H100, recorded' }));
    expect(shown()).toEqual([['80', '900 ✕misses the SLO', 'not recorded', '—']]);
    const origin = ['Runs: a.tsv (2026-02-17 12:52 UTC), b.tsv', 'Region: ams3', 'Target rate: 25 requests/s'];
    for (const from of [...origin, 'Between modes: the frontend was restarted']) {
      expect(screen.getByText(from)).toBeInTheDocument();
    }
    expect(screen.queryByTitle(/computed from other percentiles/)).not.toBeInTheDocument();
  });

  it('shows the sustained levels, and their criteria', async () => {
    const slo = { ttft: 0.4, tpot: 0.06 };
    const judged = { speculation: 'not_recorded' as const, slo, untested: [] };
    const sustained = [
      { ...judged, mode: 'round_robin' as const, level: 0, isolated: [130], ttft_only: [] },
      { ...judged, mode: 'kv' as const, level: 50, isolated: [], ttft_only: [40, 60, 120, 125] },
      { ...judged, mode: 'least_loaded' as const, isolated: [], ttft_only: [], untested: [120] },
    ];
    await show([{ ...recorded, sustained }]);
    const line = within(screen.getByRole('group', { name: 'Sustained concurrency' }));
    expect(line.getByText(/TTFT p95 ≤ 400 ms and TPOT p95 ≤ 60 ms/)).toBeInTheDocument();
    expect(texts(line.getAllByRole('listitem'))).toEqual([
      'Round-robin no level (also passes at 130, above a failed level)',
      'KV-aware 50 (judged by TTFT alone; TPOT not recorded)',
      'Least loaded not known (TTFT not recorded at 120)',
    ]);
  });

  it('is requested again when the SLOs change, which decide the sustained levels', async () => {
    const { client } = await show();
    const asked = () => client.reads.mock.calls.filter(([path]) => path === '/baselines').length;
    const before = asked();
    await act(async () => client.show({}, { settings: settings({ slo: { ttft: 0.4, tpot: 0.06 } }) }));
    expect(asked()).toBe(before + 1);
  });

  it('offers no choice where there is one baseline', async () => {
    await show([recorded]);
    expect(screen.queryByRole('combobox')).not.toBeInTheDocument();
    expect(screen.getAllByText('3× H200, recorded')).not.toHaveLength(0);
  });

  it.each<[string, Baseline[] | Problem, RegExp]>([
    ['that none of its levels is on the slider', [{ ...recorded, rows: [row(40, 'kv')] }], /None of its 1 levels is/],
    ['that there is none', [], /No recorded results yet/],
    ['why it cannot be read', new Problem(502, 'The load generator does not respond.'), /does not respond\.$/],
  ])('reports %s', async (_, baselines, words) => {
    await show(baselines);
    expect(screen.getByText(words)).toBeInTheDocument();
  });

  it('stays while the load generator is unreachable, because it was recorded', async () => {
    const { client } = await show();
    act(() => client.lose());
    expect(shown()).toHaveLength(2);
    expect(screen.queryByText('live now')).not.toBeInTheDocument();
  });

  it('does not wait for a load generator that is lost from the start', async () => {
    const client = new FakeClient();
    client.lose();
    client.reads.mockResolvedValue({ baselines: [recorded] });
    renderWith(client, <Chosen />);
    await settled(client, '/baselines');
    expect(screen.queryByText(/^Waiting/)).not.toBeInTheDocument();
    expect(screen.getByText(/once the load generator responds/)).toBeInTheDocument();
  });
});

describe('the curves', () => {
  const curves = (rows_: BaselineRow[], all = true) =>
    toCurves(toBenchmark({ ...recorded, rows: rows_ }, settings(), all));

  it('have the recorded value of each level, with gaps where there is none, and their objective', () => {
    const [ttft, hits] = curves([
      row(60, 'kv', { ttft: { p95: 0.4 }, kv_hit_ratio: 0.99 }),
      row(60, 'round_robin', { ttft: { p95: 0.8 } }),
      row(90, 'round_robin', { ttft: { p95: 0.7 } }),
      row(120, 'kv', { ttft: { p95: 0.5 }, kv_hit_ratio: 0.98 }),
    ]);
    expect([ttft.metric.heading, hits.metric.heading]).toEqual(['TTFT p95, ms', 'KV hit rate, %']);
    expect(ttft.lines.map(({ tone, points }) => [tone, Object.fromEntries(points)])).toEqual([
      ['round_robin', { 60: 0.8, 90: 0.7, 120: undefined }],
      ['kv', { 60: 0.4, 90: undefined, 120: 0.5 }],
    ]);
    expect([ttft.slo, hits.slo]).toEqual([0.6, undefined]);
    expect(ttft.x).toEqual({ levels: [60, 90, 120], unit: 'conversations' });
  });

  it('have the live value as a point, where it has settled and lies within the levels', () => {
    const rows_ = [row(60, 'kv', { ttft: { p95: 0.4 } }), row(180, 'kv', { ttft: { p95: 0.9 } })];
    const model = toBenchmark({ ...recorded, rows: rows_ }, settings(), true);
    const points = (change: LaneChange) =>
      toCurves(model, liveValues(laneSnapshot(change)))[0].lines.find(({ key }) => key === 'live')?.points;
    expect(points({})).toEqual([[120, 0.544]]);
    expect(points({ baseline: { settling: true } })).toBeUndefined();
    expect(points({ state: { concurrency: { target: 200, actual: 200 } } })).toBeUndefined();
    expect(points({ state: { running: false } })).toBeUndefined();
  });

  it('keep conversations and rates apart', () => {
    const rows_ = [
      row(60, 'kv', { ttft: { p95: 0.4 } }),
      row('12/s', 'kv', { ttft: { p95: 0.5 }, kv_hit_ratio: 0.98 }),
      row('2.5/s', 'kv', { ttft: { p95: 0.3 } }),
    ];
    expect(curves(rows_).map(({ metric, x }) => [metric.heading, x])).toEqual([
      ['TTFT p95, ms', { levels: [60], unit: 'conversations' }],
      ['TTFT p95, ms', { levels: [2.5, 12], unit: 'conversations/s' }],
      ['KV hit rate, %', { levels: [2.5, 12], unit: 'conversations/s' }],
    ]);
  });

  it('keep kinds of speculation apart', () => {
    const [{ lines }] = curves([
      row(60, 'kv', { speculation: 'off', ttft: { p95: 0.4 } }),
      row(60, 'kv', { speculation: 'eagle3', ttft: { p95: 0.3 } }),
    ]);
    expect(lines.filter(({ tone }) => tone === 'kv').map(({ key, points }) => [key, points])).toEqual([
      ['kv eagle3', [[60, 0.3]]],
      ['kv off', [[60, 0.4]]],
    ]);
  });
});

describe('the model', () => {
  const model = (rows_: BaselineRow[]) =>
    toBenchmark({ ...recorded, advantages: undefined, rows: rows_ }, settings(), true);
  const gains = (rows_: BaselineRow[]) => {
    const { metrics, pairs, baseline } = model(rows_);
    return pairs.map((pair) => gainOf(metrics[0], pair, baseline));
  };

  it('keeps kinds of speculation apart', () => {
    const rows_ = [
      row(60, 'kv', { speculation: 'off', ttft: { p95: 0.4 } }),
      row(60, 'kv', { speculation: 'eagle3', ttft: { p95: 0.3 } }),
      row(60, 'round_robin', { speculation: 'off', ttft: { p95: 0.8 } }),
    ];
    expect(model(rows_).speculations).toBe(true);
    expect(model(rows_).pairs.map(({ speculation }) => speculation)).toEqual(['eagle3', 'off']);
    expect(gains(rows_).map((gain) => gain?.text)).toEqual([undefined, '+50.0 %']);
  });

  it('has the figures of speculation where something was drafted', () => {
    const keys = (change: Partial<BaselineRow>) => model([row(60, 'kv', change)]).metrics.map(({ key }) => key);
    expect(keys({ acceptance_rate: 0.6, tokens_per_step: 2.5 })).toEqual(['acceptance_rate', 'tokens_per_step']);
    expect(keys({ tokens_per_step: 1 })).toEqual([]);
    expect(model([row(60, 'kv', {})]).missing).not.toContain('Acceptance rate');
  });

  it('takes the newest of several measurements', () => {
    const { pairs } = model([
      row(60, 'kv', { ttft: { p95: 0.3 }, measured: '2026-11-20T10:00:00Z' }),
      row(60, 'kv', { ttft: { p95: 0.4 }, measured: '2026-11-20T09:00:00Z' }),
    ]);
    expect(pairs.map(({ rows: { kv } }) => kv?.ttft.p95)).toEqual([0.3]);
  });

  it('shows no gain that one decimal does not show, and none over nothing', () => {
    const same = { ttft: { p95: 0.6 } };
    const [none] = gains([row(60, 'kv', same), row(60, 'round_robin', { ttft: { p95: 0.60001 } })]);
    expect(none).toEqual({ text: '0.0 %', kind: 'same', verdict: 'not judged' });
    expect(gains([row(60, 'kv', same), row(60, 'round_robin', { ttft: { p95: 0 } })])).toEqual([undefined]);
  });

  it('has, of the levels of the slider, those with every figure, where there are any', () => {
    const rows_ = [
      row(60, 'kv', { ttft: { p95: 0.3 }, requests_per_second: 2 }),
      row(60, 'round_robin', { ttft: { p95: 0.3 } }),
      row(70, 'kv', { ttft: { p95: 0.3 } }),
      row(200, 'kv', { ttft: { p95: 0.3 }, requests_per_second: 3 }),
    ];
    const shown = (all: boolean, of = rows_) =>
      toBenchmark({ ...recorded, rows: of }, settings(), all).pairs.map((pair) => pair.concurrency);
    expect(shown(false)).toEqual([60]);
    expect(shown(true)).toEqual([60, 70, 200]);
    expect(shown(false, rows_.slice(1, 3))).toEqual([60, 70]);
  });

  it('selects the baseline of the settings, else a recorded one', () => {
    const measured: Baseline = { ...recorded, name: 'this target', kind: 'measured' };
    const named = (default_baseline: string, all: Baseline[]) =>
      defaultBaseline(all, settings({ default_baseline }))?.name;
    expect(named('other', [measured, recorded, other])).toBe('other');
    expect(named('this target', [measured, recorded, other])).toBe('recorded');
    expect(named('gone', [measured])).toBe('this target');
    expect(named('', [])).toBeUndefined();
  });
});
