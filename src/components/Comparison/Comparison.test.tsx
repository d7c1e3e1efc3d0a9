import { act, screen, within } from '@testing-library/react';

import { Problem } from '../../client';
import { violations } from '../../test/axe';
import { column, comparison, FakeClient, settings, type LaneChange } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { stubSizes } from '../../test/sizes';
import { Comparison, type ComparisonOptions } from './Comparison';
import { COMPARE_EVERY } from './useComparison';

// The age of snapshots is mocked, because its clock ticks.
jest.mock('../../lib/useNow', () => ({ useNow: () => Date.now(), useAge: () => 0 }));

beforeEach(() => stubSizes());
afterEach(() => jest.restoreAllMocks());

function show(client: FakeClient, options: ComparisonOptions = {}) {
  return renderWith(client, <Comparison lane="main" {...options} />);
}

function showLane(lane: LaneChange = {}, options: ComparisonOptions = {}, client = new FakeClient()) {
  client.show(lane);
  return show(client, options);
}

const latencies = () => within(screen.getByRole('table', { name: 'Latencies, live and recorded' }));
const rates = () => within(screen.getByRole('table', { name: 'Mean TTFT and rates, live and recorded' }));
const row = (table: ReturnType<typeof within>, name: string) =>
  table.getByRole('row', { name: new RegExp(`^${name}`) });

describe('the tables', () => {
  it('have heads of rows and columns, and the SLOs above them', () => {
    showLane();
    expect(texts(latencies().getAllByRole('columnheader'))).toEqual([
      'Latency',
      'Live p50this step, n 480',
      'RR p50recorded',
      'KV p50recorded',
      'Live p95this step, n 480',
      'RR p95recorded',
      'KV p95recorded',
    ]);
    expect(texts(latencies().getAllByRole('rowheader'))).toEqual(['TTFT', 'TPOT', 'ITL', 'End-to-end']);
    expect(texts(rates().getAllByRole('rowheader')).join()).toBe(
      'TTFT mean,Output tokens/s,Requests/s,KV hit rate,Error rate, 60 s'
    );
    expect(screen.getByText('SLO: TTFT p95 ≤ 600 ms, TPOT p95 ≤ 60 ms')).toBeInTheDocument();
    expect(screen.getByText('KV-aware live at concurrency 120 · Baseline: 3 × H200')).toBeInTheDocument();
  });

  it('describe a value completely in words', () => {
    showLane();
    for (const words of ['375 ms', '−31.9 %) better', 'meets the SLO, but is near it', '95 % interval 240–270']) {
      expect(row(latencies(), 'TTFT')).toHaveTextContent(words);
    }
    expect(screen.getAllByTitle(/^! meets the SLO, but is near it\. The rule: .* 90 %/)).not.toHaveLength(0);
    expect(row(latencies(), 'TPOT')).toHaveTextContent('misses the SLO');
    expect(row(latencies(), 'ITL')).toHaveTextContent('not recorded');
  });

  it('have a legend of the tags in use', () => {
    showLane();
    const legend = within(screen.getByRole('list', { name: 'Legend' }));
    expect(legend.getByText(/Round-robin routing, speculation not recorded/)).toBeInTheDocument();
    expect(legend.getByText('not recorded')).toBeInTheDocument();
    expect(legend.queryByText('interpolated')).not.toBeInTheDocument();
    expect(screen.getByText(/^: the last/)).toHaveTextContent('Live: the last 2 min 30 s of this step');
    expect(legend.getByText(/^Differences: live less this column/)).toBeInTheDocument();
  });

  it('follow each snapshot, and show SLOs with their own decimals', () => {
    const { client } = showLane();
    const live = { ...comparison().live, ttft: { p50: 0.3, p95: 0.4, n: 481 } };
    const slo = { ttft: 0.5505, tpot: 0.06 };
    act(() => client.show({ baseline: { live, n: 481 } }, { settings: settings({ slo }) }));
    expect(row(latencies(), 'TTFT')).toHaveTextContent('300 ms');
    expect(latencies().getByText('Live p50')).toHaveTextContent('n 481');
    expect(screen.getByText('SLO: TTFT p95 ≤ 550.5 ms, TPOT p95 ≤ 60 ms')).toBeInTheDocument();
  });
});

describe('what differs', () => {
  it('is counted, and opens as a table', () => {
    const differences = [
      { field: 'engine', live: 'simulated trtllm', baseline: 'trtllm' },
      { field: 'tensor_parallel', live: 'not known', baseline: '1' },
    ];
    showLane({ baseline: { differences } });
    const details = screen.getByText('2 settings differ from the baseline').closest('details');
    expect(details).not.toHaveAttribute('open');
    const cells = Array.from(details?.querySelectorAll('tbody tr') ?? [], ({ children }) => texts(children));
    expect(cells).toEqual([
      ['Engine', 'simulated TensorRT-LLM', 'TensorRT-LLM'],
      ['Tensor parallelism', 'not known', '1'],
    ]);
  });

  it('is not mentioned where nothing differs', () => {
    showLane({ state: { simulation: { profile: 'h200-tp1', calibrated: true, speed: 1 } } });
    expect(screen.queryByText(/differ from the baseline|differs/)).not.toBeInTheDocument();
    expect(screen.queryByText('Not calibrated')).not.toBeInTheDocument();
  });

  it.each([
    [{ calibrated: false, speed: 1 }, /with its current settings is assumed/],
    [{ calibrated: true, speed: 4 }, /runs at 4× speed/],
  ])('may be that nothing was measured: %j', (simulation, words) => {
    const { client } = showLane({ state: { simulation: { profile: 'h100-tp2', ...simulation } } });
    expect(screen.getByText('Not calibrated').parentElement).toHaveTextContent(words);
    act(() => client.lose());
    expect(screen.queryByText('Not calibrated')).not.toBeInTheDocument();
  });
});

describe('the states', () => {
  it('while loading', () => {
    show(new FakeClient());
    expect(screen.getByText('Waiting')).toBeInTheDocument();
    expect(screen.getByText('Waiting for the first snapshot…')).toBeInTheDocument();
    expect(screen.queryByRole('table')).not.toBeInTheDocument();
  });

  it('while settling', () => {
    showLane({ state: { settling: true }, baseline: { settling: true, settling_for_seconds: 42 } });
    expect(screen.getByText('42 s to go')).toBeInTheDocument();
    expect(screen.getByText(/starts after 60 s of it/)).toBeInTheDocument();
    expect(screen.queryByText(/^Percentages/)).not.toBeInTheDocument();
  });

  it('while lost: no old number is shown as live', () => {
    const { client } = showLane();
    act(() => client.lose('connection refused'));
    expect(screen.getByRole('alert')).toHaveTextContent('connection refused');
    expect(row(latencies(), 'TTFT')).not.toHaveTextContent('255');
    expect(row(latencies(), 'TTFT')).toHaveTextContent(/— lost.*375 ms/);
  });

  it('while nothing was measured in another mode', () => {
    showLane({ baseline: { name: 'this target', title: 'This target, as measured', columns: [] } });
    expect(screen.getByText(/has not been measured in another mode yet/)).toBeInTheDocument();
  });

  it('reports which measured row was not stored, and why', () => {
    const reason = 'the step ended after 43 s of counted turns';
    const arm = { mode: 'round_robin', speculation: 'off', concurrency: 60 } as const;
    const not_kept = { ...arm, time: '2026-11-20T09:58:00Z', reason };
    showLane({ baseline: { name: 'this target', columns: [], not_kept } });
    expect(screen.getByText('Not kept').parentElement).toHaveTextContent(
      `Not kept: Round-robin at 60, 2 min 0 s ago: ${reason}.`
    );
  });

  it('explains why nothing is better or worse', () => {
    const withheld = 'lane twin shares its workers';
    const columns = [column({ ttft: { p50: { lookup: 'exact', value: 0.3 }, p95: { lookup: 'exact', value: 0.7 } } })];
    showLane({ baseline: { withheld, columns } });
    expect(screen.getByText('No verdict').parentElement).toHaveTextContent('No verdict: lane twin shares its workers.');
    expect(row(latencies(), 'TTFT')).not.toHaveTextContent(/better|worse|difference/);
  });

  it('asks for the live mode where it is not known', () => {
    const baseline = { withheld: 'the routing mode is unknown' };
    showLane({ state: { mode: 'unknown', driver: 'manual' }, baseline });
    expect(screen.getByText('No verdict').parentElement).toHaveTextContent(/Set it to compare\.$/);
  });

  it('while every column is hidden', () => {
    showLane({}, { hideKV: true, hideRoundRobin: true });
    expect(screen.getByText(/Nothing to compare with/)).toBeInTheDocument();
  });
});

describe('a chosen baseline', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());
  const pass = (ms: number) => act(() => jest.advanceTimersByTimeAsync(ms));
  const showChosen = (first: Promise<unknown>) => {
    const client = new FakeClient();
    client.reads.mockReturnValueOnce(first);
    return showLane({}, { baseline: 'my run' }, client);
  };
  const mine = comparison({ name: 'my run', title: 'My run' });

  it('is requested every second while live', async () => {
    const { client, unmount } = showChosen(Promise.resolve(mine));
    client.reads.mockResolvedValue(mine);
    await pass(0);
    expect(client.reads).toHaveBeenLastCalledWith('/comparison?baseline=my%20run&lane=main');
    expect(screen.getByText(/Baseline: My run/)).toBeInTheDocument();
    await pass(2 * COMPARE_EVERY);
    expect(client.reads).toHaveBeenCalledTimes(3);
    act(() => client.lose());
    await pass(5 * COMPARE_EVERY);
    expect(client.reads).toHaveBeenCalledTimes(3);
    expect(screen.getByText(/Baseline: My run/)).toBeInTheDocument();
    unmount();
    await pass(COMPARE_EVERY); // until the unused result is dropped
    expect(jest.getTimerCount()).toBe(0);
  });

  it('is not requested where the snapshot contains it', async () => {
    const { client } = showLane({}, { baseline: comparison().name });
    await pass(3 * COMPARE_EVERY);
    expect(client.reads).not.toHaveBeenCalled();
    expect(screen.getAllByRole('table')).toHaveLength(2);
  });

  it('stays while a request fails, with a notice', async () => {
    const { client } = showChosen(Promise.resolve(mine));
    await pass(0);
    client.reads.mockRejectedValue(new Problem(502, 'connection refused'));
    await pass(COMPARE_EVERY);
    expect(screen.getByRole('alert')).toHaveTextContent('connection refused');
    expect(screen.getByText(/Baseline: My run/)).toBeInTheDocument();
    act(() => client.lose('gone'));
    expect(screen.getByRole('alert')).toHaveTextContent('gone'); // only the loss
  });

  it('that does not exist is reported, and is shown once it exists', async () => {
    const client = new FakeClient();
    client.reads.mockRejectedValue(new Problem(404, 'no baseline "my run"'));
    client.show();
    show(client, { baseline: 'my run' });
    await pass(0);
    expect(screen.getByRole('alert')).toHaveTextContent(/Cannot compare with “my run”.*no baseline "my run"/);
    client.reads.mockResolvedValue(mine);
    await pass(COMPARE_EVERY);
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    expect(screen.getByText(/Baseline: My run/)).toBeInTheDocument();
  });
});

describe('accessibility', () => {
  it('has no violation in any state', async () => {
    const client = new FakeClient();
    const { container } = show(client, { size: 'large' });
    expect(await violations(container)).toEqual([]); // loading
    const states: LaneChange[] = [
      {},
      { state: { settling: true }, baseline: { settling: true } },
      { state: { phase: 'stopped' } },
    ];
    for (const lane of states) {
      act(() => client.show(lane));
      expect({ lane, found: await violations(container) }).toEqual({ lane, found: [] });
    }
    act(() => client.lose());
    expect(await violations(container)).toEqual([]);
  });
});
