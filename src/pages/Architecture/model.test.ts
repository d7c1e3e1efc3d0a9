/** @jest-environment node */
import { cluster, manyWorkers, laneOn, worker } from '../../components/Diagram/fixtures';
import vendor from '../../vendor/digitalocean.json';
import { lights, MAX_DOTS, NO_CHASE, placeMarks, step, STEP, type Chase } from './chaser';
import { layOut } from './layout';
import { inOrder, requestPath, sentenceOf, utilization, type RequestPath } from './parts';
import { placeGroups, platformParts } from './platform';
import { advance, shares } from './flow';

describe('the layout', () => {
  it.each([
    [0, 'full'],
    [1, 'full'],
    [3, 'full'],
    [8, 'line'],
    [64, 'name'],
  ])('places %d workers within the drawing, without overlap', (n, detail) => {
    const { workers, width, height, ...rest } = layOut(n);
    expect(workers).toHaveLength(n);
    expect(rest.ways).toHaveLength(n);
    expect(rest.detail).toBe(detail);
    const named = [rest.client, rest.enduser, rest.frontend, rest.router, rest.discovery, rest.request];
    const boxes = [...workers, ...named, rest.events, rest.prometheus];
    for (const [i, a] of boxes.entries()) {
      expect(a.x >= 0 && a.y >= 0 && a.x + a.width <= width && a.y + a.height <= height).toBe(true);
      for (const b of boxes.slice(i + 1)) {
        const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
        expect({ a, b, apart }).toEqual({ a, b, apart: true });
      }
    }
  });

  it('leads each way from the load generator into its worker', () => {
    const { ways, workers, client } = layOut(3);
    ways.forEach((way, i) => {
      expect(way[0]).toMatchObject({ x: client.width });
      expect(way.at(-1)).toMatchObject({ y: workers[i].y + workers[i].height / 2 });
    });
  });
});

describe('the traffic', () => {
  const workers = (routed: number[]) => routed.map((r, i) => worker(i, { routed: r, inflight: 10 * i }));

  it('follows the requests routed within the window', () => {
    let flow = advance([], workers([100, 100, 100]), 0);
    flow = advance(flow, workers([103, 101, 100]), 1000);
    expect(shares(flow, workers([103, 101, 100]))).toEqual([0.75, 0.25, 0]);
  });

  it('follows requests in flight until one is routed, and is even where neither is reported', () => {
    expect(shares(advance([], workers([5, 5, 5]), 0), workers([5, 5, 5]))).toEqual([0, 1 / 3, 2 / 3]);
    expect(shares([], [worker(0, { routed: undefined, inflight: undefined })])).toEqual([1]);
    expect(shares([], [])).toEqual([]);
  });

  it('ignores a counter that restarts and a new worker', () => {
    const flow = advance(advance([], workers([100]), 0), workers([2, 50]), 1000);
    expect(shares(flow, workers([2, 50]))).toEqual([0, 1]); // by requests in flight
  });

  it('drops old snapshots and ignores repeated ones', () => {
    let flow: ReturnType<typeof advance> = [];
    for (let s = 0; s < 100; s++) {
      flow = advance(flow, workers([s]), s * 1000);
    }
    expect(flow.length).toBeLessThanOrEqual(11);
    expect(advance(flow, workers([99]), 99_000)).toBe(flow);
  });
});

describe('the marks', () => {
  it.each([1, 3, 8, 64])('of ways to %d workers can be seen: beneath no box, in the order of the way', (n) => {
    const layout = layOut(n);
    const { points, ways } = placeMarks(layout);
    expect(ways).toHaveLength(n);
    const boxes = [layout.client, layout.frontend, layout.router, layout.request, ...layout.workers];
    for (const { x, y } of points) {
      expect(boxes.filter((b) => x >= b.x && x <= b.x + b.width && y >= b.y && y <= b.y + b.height)).toEqual([]);
    }
    for (const [i, way] of ways.entries()) {
      const places = way.map((p) => points[p]);
      expect(places.every((p, k) => k === 0 || p.x > places[k - 1].x)).toBe(true);
      expect(Math.abs(places.at(-1)!.x - layout.workers[i].x)).toBeLessThan(30);
    }
  });

  it('are the same ones where ways run together, and end apart', () => {
    const { points, ways } = placeMarks(layOut(64));
    expect(new Set(ways.map((way) => way.slice(0, 7).join())).size).toBe(1);
    expect(new Set(ways.map((way) => way.at(-1))).size).toBe(64);
    expect(new Set(points.map(({ x, y }) => `${x}/${y}`)).size).toBe(points.length);
  });
});

describe('the chase', () => {
  const ways = [
    [0, 1, 2],
    [0, 1, 3],
    [0, 1, 4],
  ];

  /** Counts the requests that start to each worker within the given seconds, and the most at once. */
  function setOut(requestsPerSecond: number, share: number[], seconds: number) {
    const to = share.map(() => 0);
    let chase: Chase = NO_CHASE;
    let most = 0;
    for (let i = 0; i < (seconds * 1000) / STEP; i++) {
      chase = step(chase, { requestsPerSecond, shares: share }, ways);
      const starting = chase.traveling.filter(({ at }) => at === 0);
      starting.forEach(({ way }) => to[way]++);
      most = Math.max(most, starting.length);
    }
    return { to, most, traveling: chase.traveling.length };
  }

  it('starts requests at the given rate, one at a time, to each worker its share', () => {
    expect(setOut(1, [0.5, 0.3, 0.2], 100)).toMatchObject({ to: [50, 30, 20], most: 1 });
    expect(setOut(0.1, [0, 1, 0], 100).to).toEqual([0, 10, 0]);
  });

  it('shows no more than can be distinguished, and keeps none that arrived', () => {
    const { to, most, traveling } = setOut(1000, [1, 0, 0], 100);
    expect(to).toEqual([100 * MAX_DOTS, 0, 0]);
    expect(most).toBe(1);
    expect(traveling).toBeLessThanOrEqual(4);
  });

  it.each([0, -1, NaN])('starts none at %d requests a second', (rate) => {
    expect(setOut(rate, [1, 0, 0], 10)).toEqual({ to: [0, 0, 0], most: 0, traveling: 0 });
  });

  it('starts none without workers', () => {
    expect(placeMarks(layOut(0))).toEqual({ points: [], ways: [] });
    expect(step(NO_CHASE, { requestsPerSecond: 9, shares: [] }, [])).toEqual(NO_CHASE);
  });

  it('lights where a request is, and dimly where it was', () => {
    const at = (n: number) => Object.fromEntries(lights({ owed: [], traveling: [{ way: 1, at: n }] }, ways));
    expect(at(0)).toEqual({ 0: 'head' });
    expect(at(2)).toEqual({ 1: 'tail', 3: 'head' });
    expect(at(3)).toEqual({ 3: 'tail' });
    const behind = [
      { way: 0, at: 2 },
      { way: 1, at: 1 },
    ];
    const two = lights({ owed: [], traveling: behind }, ways);
    expect(Object.fromEntries(two)).toEqual({ 0: 'tail', 1: 'head', 2: 'head' });
  });
});

const target = { kind: 'simulated' as const, questioner: 'built_in' as const, followup: 'built-in questioner' };
const figure = (path: RequestPath, part: keyof Omit<RequestPath, 'workers' | 'more'>, name: string) =>
  path[part].figures.find((f) => f.name === name)?.value;

describe('the parts', () => {
  it('carry this cluster’s numbers', () => {
    const path = requestPath(laneOn(3), true, target);
    expect(figure(path, 'discovery', 'workers found')).toBe('3'); // the drawing's test has the other figures
    expect(sentenceOf(path.workers[1])).toBe(
      'worker-1, 11 in flight, 1 waiting, 42.0 % KV cache, 80.0 % GPU, 60.0 ms queue time, 51 routed to it'
    );
  });

  it.each([
    ['smg', 'SMG', 'part of SMG here'],
    ['llm-d', 'llm-d', 'part of llm-d here'],
    ['dynamo', 'Router', 'chat template'],
    [undefined, 'Router', 'chat template'],
  ])('name the recognized router: %s', (router, title, words) => {
    const path = requestPath(laneOn(3, { target: { router } }), true, target);
    expect(path.router.title).toBe(title);
    expect(path.frontend.text).toContain(words);
  });

  it('say how many workers are not drawn', () => {
    const lane = laneOn(0, { cluster: manyWorkers() });
    const path = requestPath(lane, true, target);
    expect(path.workers).toHaveLength(2);
    expect(path.more).toBe('1,998 more workers');
    expect(figure(path, 'discovery', 'workers found')).toBe('2,000');
    expect(requestPath(laneOn(3), true, target).more).toBeUndefined();
    const gpus = platformParts(vendor.platform, lane, true, target, false).flatMap((g) =>
      g.items.flatMap((i) => i.figures)
    );
    expect(gpus.find((f) => f.name === 'GPUs')?.value).toBe('16,000');
  });

  it('have a dash for every number when nothing is live', () => {
    const path = requestPath(laneOn(3), false, target);
    expect(path.workers).toHaveLength(3);
    const values = inOrder(path).flatMap((p) => p.figures.map((f) => f.value));
    expect(new Set(values)).toEqual(new Set(['—']));
    expect(sentenceOf(path.frontend)).toBe('Frontend, not reported queued, not reported in flight');
  });

  it('are complete without a lane, without workers', () => {
    const path = requestPath(undefined, false, { kind: 'unknown' });
    expect(inOrder(path)).toHaveLength(8);
    expect(path.enduser.presence).toMatchObject({ is: 'unknown' });
  });

  it.each([
    ['simulated', { discovery: 'absent', request: 'here', events: 'here', enduser: 'absent' }],
    ['dynamo', { discovery: 'here', request: 'here', events: 'here' }],
    ['plain', { discovery: 'unknown', request: 'unknown', events: 'unknown' }],
  ] as const)('say what a %s target lacks', (kind, expected) => {
    const path = requestPath(laneOn(3), true, { ...target, kind });
    for (const [part, is] of Object.entries(expected)) {
      expect({ part, ...path[part as 'events'].presence }).toMatchObject({ part, is });
    }
  });

  it('name what carries each plane, where that is known', () => {
    const carried = (kind: 'mock' | 'dynamo' | 'simulated', driver: string) => {
      const { discovery, request, events } = requestPath(laneOn(3, { state: { driver } }), true, { ...target, kind });
      return [discovery, request, events].map((part) =>
        part.figures.filter(({ name }) => name === 'registry' || name === 'transport').map(({ value }) => value)
      );
    };
    expect(carried('mock', 'pinned')).toEqual([['files'], ['TCP'], ['ZMQ']]);
    expect(carried('dynamo', 'kubernetes')).toEqual([['CRDs and EndpointSlices'], [], []]);
    expect(carried('dynamo', 'pinned')).toEqual([[], [], []]);
    expect(carried('simulated', 'simulated')).toEqual([[], [], []]);
    const { discovery, events } = requestPath(laneOn(3), true, target);
    expect(discovery.text).toMatch(/CRD.*EndpointSlices/);
    expect(events.text).toMatch(/NATS or ZMQ/);
  });

  it('report that round-robin uses no events', () => {
    const path = requestPath(laneOn(3, { state: { mode: 'round_robin' } }), true, target);
    expect(path.events.presence).toMatchObject({ is: 'idle', why: expect.stringContaining('Round-robin') });
    expect(sentenceOf(path.events)).toBe('Event plane, not used');
  });

  it('make no statement on events under a mode that is not reported', () => {
    const path = requestPath(laneOn(3, { state: { mode: 'unknown', driver: 'manual' } }), true, target);
    expect(path.events.presence).toMatchObject({ is: 'unknown' });
    expect(path.router.figures.find(({ name }) => name === 'mode')).toEqual({
      name: 'mode',
      value: 'Mode unknown',
      source: 'Unknown: neither an operator nor this server has reported it.',
    });
  });

  it.each([
    ['prometheus', 'here'],
    ['direct', 'absent'],
    [undefined, 'unknown'],
  ])('know where cluster metrics come from: %s', (source, is) => {
    const lane = laneOn(1, { cluster: cluster([worker(0)], { source, problem: 'no answer' }) });
    expect(requestPath(lane, true, target).prometheus.presence.is).toBe(is);
  });

  it('show a model that plays the end user', () => {
    const path = requestPath(laneOn(1), true, {
      kind: 'dynamo',
      questioner: 'model',
      followup: 'the questioner of llama-8b',
    });
    expect(path.enduser.presence).toMatchObject({ is: 'here', why: expect.stringContaining('llama-8b') });
  });

  it('average over a worker’s GPUs that report a value', () => {
    const gpus = [{ index: '0', utilisation: 0.5 }, { index: '1', utilisation: 1 }, { index: '2' }];
    expect(utilization(worker(0, { gpus }))).toBe(0.75);
    expect(utilization(worker(0, { gpus: [] }))).toBeUndefined();
  });
});

describe('the platform', () => {
  const presence = (lane = laneOn(3), kind: 'simulated' | 'dynamo' = 'simulated', named = false) =>
    platformParts(vendor.platform, lane, true, { ...target, kind }, named);

  it('has every group and thing of the vendor', () => {
    const parts = presence();
    expect(parts.map((g) => g.group.title)).toEqual(vendor.platform.groups.map((g) => g.title));
    expect(parts.map((g) => g.items.length)).toEqual(vendor.platform.groups.map((g) => g.items.length));
  });

  it('is not used by a simulated cluster, except for Prometheus', () => {
    const items = presence().flatMap((g) => g.items);
    const there = items.filter((i) => i.presence.is === 'here').map((i) => i.id);
    expect(there.every((id) => id.endsWith('.monitoring'))).toBe(true);
    expect(items[0].presence.why).toMatch(/simulated/);
  });

  it('is unknown for a Dynamo elsewhere, except for the operator that switches it', () => {
    const items = presence(laneOn(3, { state: { driver: 'kubernetes' } }), 'dynamo').flatMap((g) => g.items);
    expect(items.find((i) => i.id.endsWith('.operator'))?.presence.is ?? 'here').toBe('here');
    expect(items.some((i) => i.presence.is === 'unknown')).toBe(true);
  });

  it('follows the settings and the deployment’s description', () => {
    const features = [
      { name: 'grove' as const, in_use: false, evidence: 'off' },
      { name: 'kai' as const, in_use: true, evidence: 'queue' },
    ];
    const lane = laneOn(3, { state: { driver: 'kubernetes' }, target: { features } });
    const items = presence(lane, 'dynamo', true).flatMap((g) => g.items);
    const of = (id: string) => items.find((i) => i.id.endsWith(`.${id}`))?.presence;
    expect(items.filter(({ presence: { is } }) => is === 'unknown')).toEqual([]);
    expect(of('scheduler')).toEqual({ is: 'here', why: 'queue' });
    expect(of('grove')).toEqual({ is: 'absent', why: 'off' });
    expect(of('gpu')).toMatchObject({ is: 'configured', why: expect.stringMatching(/not read from the cluster/) });
    const simulated = presence(laneOn(3), 'simulated', true).flatMap((g) => g.items);
    expect(simulated.filter(({ presence: { is } }) => is === 'configured')).toEqual([]);
  });

  it('places groups in columns without overlap', () => {
    const { groups, height } = placeGroups([3, 2, 3, 4, 2]);
    const ends = groups.map(({ rect }) => rect.y + rect.height);
    expect(Math.max(...ends)).toBe(height);
    expect(groups[3].rect.y).toBeGreaterThan(groups[1].rect.height);
    expect(placeGroups([]).height).toBe(0);
  });
});
