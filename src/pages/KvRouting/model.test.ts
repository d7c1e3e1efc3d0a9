/** @jest-environment node */
import { worker } from '../../components/Diagram/fixtures';
import {
  cheapest,
  chosenOf,
  assignRoundRobin,
  assignedWorker,
  heldTokens,
  alternativeWorker,
  keyOf,
  ofOneMode,
  overlapWeight,
  requestOf,
  shortId,
  tally,
  toCompute,
  verdict,
} from './routing';
import { workOut } from './example';
import { candidate, conversation, decision, turn } from './fixtures';
import { recentTurns } from './RecentTurns';
import { nextConversation, buildTree, follow, SHOWN_AFTER_END, siblings } from './tree';

const NONE = new Map<string, number>();
const several = (n: number) =>
  Array.from({ length: n }, (_, i) => decision({ seconds: n - i, request_id: `c-${n - i}-1` }));

describe('a decision', () => {
  it('names its conversation and turn', () => {
    expect(requestOf(decision())).toEqual({ conversation: 'main-abc-7', turn: '2' });
    expect(requestOf(decision({ request_id: 'odd' }))).toEqual({ conversation: '', turn: 'odd' });
    expect(shortId('main-abc-7')).toBe('7');
  });

  it('leaves the part to be computed that the worker does not hold, at least 0', () => {
    expect(toCompute(decision(), candidate(1, 75, 5))).toBe(800);
    expect(heldTokens(decision({ prompt_tokens: 3190 }), candidate(1, 100, 5))).toBe(3190);
  });

  it('derives the overlap weight from its costs', () => {
    expect(overlapWeight(decision())).toBe(1);
    const doubled = decision().candidates.map((c) => ({ ...c, cost: (2 * c.prefill_tokens) / 32 + c.decode_blocks }));
    expect(overlapWeight(decision({ candidates: doubled }))).toBe(2);
  });

  it('is undefined where nothing is to be prefilled, or the costs contradict each other', () => {
    expect(overlapWeight(decision({ candidates: [candidate(0, 100, 5)] }))).toBeUndefined();
    expect(overlapWeight(decision({ candidates: [] }))).toBeUndefined();
    const odd = [candidate(0, 20, 10), { ...candidate(1, 20, 10), cost: 7 }];
    expect(overlapWeight(decision({ candidates: odd }))).toBeUndefined();
  });

  it('has a cheapest worker, the first of equals, where there is one', () => {
    expect(cheapest(decision())?.name).toBe('worker-1');
    expect(cheapest(decision({ candidates: [candidate(0, 5, 5), candidate(1, 5, 5)] }))?.name).toBe('worker-0');
    expect(cheapest(decision({ candidates: [] }))).toBeUndefined();
    expect(chosenOf(decision({ candidates: [] }))).toBeUndefined();
  });

  it.each([
    ['the longest prefix', {}, /worker-1 has the longest cached prefix and the lowest cost/],
    ['a busier one', { chosen: 0, candidates: [candidate(0, 20, 10), candidate(1, 75, 500)] }, /that one is busier/],
    ['no cached prefix', { chosen: 0, candidates: [candidate(0, 0, 1), candidate(1, 0, 5)] }, /No worker has any/],
    ['temperature', { chosen: 0 }, /the router’s temperature is above 0/],
    ['a pinned request', { pinned: true }, /specified its worker, worker-1/],
    [
      'round-robin',
      { mode: 'round_robin' as const, chosen: 2 },
      /Round-robin chose worker-2.*The lowest cost was worker-1/,
    ],
    ['no worker', { candidates: [] }, /No worker was ready/],
  ])('says why: %s', (_, change, words) => {
    expect(verdict(decision(change))).toMatch(words);
  });
});

describe('round-robin, replayed', () => {
  it('assigns the decisions in their order, oldest first', () => {
    const list = several(4);
    const dealt = assignRoundRobin(list, NONE);
    expect([...list].reverse().map((d) => assignedWorker(d, dealt)?.name)).toEqual([
      'worker-0',
      'worker-1',
      'worker-2',
      'worker-0',
    ]);
  });

  it('keeps assignments when the list moves on, and drops those no longer listed', () => {
    const all = several(6);
    const before = assignRoundRobin(all.slice(2), NONE);
    const after = assignRoundRobin(all.slice(0, 4), before);
    for (const d of all.slice(2, 4)) {
      expect(after.get(keyOf(d))).toBe(before.get(keyOf(d)));
    }
    expect(after.size).toBe(4);
    expect(after.get(keyOf(all[0]))).toBe(5);
  });

  it('sums the tokens that either leaves to be computed', () => {
    const list = several(3);
    // kv: 800 each; round-robin: 2560 + 800 + 2880.
    expect(tally(list, assignRoundRobin(list, NONE))).toEqual({
      decisions: 3,
      prompt: 9600,
      chosen: 2400,
      instead: 6240,
    });
  });

  it('uses the lowest cost as the alternative where round-robin decided', () => {
    const list = several(2).map((d) => ({ ...d, mode: 'round_robin' as const, chosen: 2 }));
    expect(alternativeWorker(list[0], NONE)?.name).toBe('worker-1');
    expect(tally(list, assignRoundRobin(list, NONE))).toMatchObject({ chosen: 5760, instead: 1600 });
  });

  it('omits decisions without a worker, and has no sum of none', () => {
    const broken = decision({ candidates: [] });
    expect(tally([broken], assignRoundRobin([broken], NONE))).toMatchObject({ decisions: 0, chosen: 0 });
    expect(tally([], NONE)).toMatchObject({ decisions: 0 });
  });

  it('does not mix modes', () => {
    const list = [decision(), decision({ mode: 'round_robin' })];
    expect(ofOneMode(list)).toEqual([list[0]]);
  });
});

describe('the prefix tree', () => {
  const workers = [worker(0), worker(1)];

  it('grows a branch a turn, each from the end of the prompt before', () => {
    const tree = buildTree(conversation([turn(1), turn(2), turn(3, { worker: '1000' })]), workers);
    expect(tree.branches.map(({ from, prompt, cached }) => ({ from, prompt, cached }))).toEqual([
      { from: 0, prompt: 4000, cached: 3500 },
      { from: 4000, prompt: 5000, cached: 4900 },
      { from: 5000, prompt: 6000, cached: 5900 },
    ]);
    expect(tree.branches.map((b) => b.moved)).toEqual([false, false, true]);
    expect(tree.branches[2]).toMatchObject({ worker: 0, workerName: 'worker-0' });
    expect(tree).toMatchObject({ tokens: 6800, shared: 3500, others: [{ number: 4, state: 'to come' }] });
  });

  it('uses the end of an id that the cluster does not list, and no name where none was reported', () => {
    const tree = buildTree(conversation([turn(1, { worker: '123456789' }), turn(2, { worker: undefined })]), workers);
    expect(tree.branches[0]).toMatchObject({ worker: -1, workerName: '…456789' });
    expect(tree.branches[1]).toMatchObject({ worker: -1, workerName: undefined, moved: false });
  });

  it('shows failed, streaming and coming turns without a length', () => {
    const live = { number: 3, started: '', worker: '1001', user_message: '', assistant_message: '' };
    const failed = turn(2, { status: 'error', prompt_tokens: undefined });
    expect(buildTree(conversation([turn(1), failed], { live }), workers).others).toEqual([
      { number: 2, state: 'failed' },
      { number: 3, state: 'streaming', workerName: 'worker-1' },
      { number: 4, state: 'to come' },
    ]);
    expect(buildTree(conversation([turn(1), failed], { status: 'error' }), workers).others).toHaveLength(1);
  });

  it('accepts no turns, and no cached tokens', () => {
    expect(buildTree(conversation([]), [])).toMatchObject({ branches: [], tokens: 0, shared: undefined });
    expect(buildTree(conversation([turn(1, { cached_tokens: undefined })]), []).branches[0].cached).toBeUndefined();
  });
});

describe('the conversation that is followed', () => {
  const time = Date.parse('2026-11-20T10:00:00Z');
  const listed = (id: string, done: number, planned = 4) =>
    conversation([], { id, turns_done: done, turns_planned: planned });
  const active = [listed('a', 0), listed('b', 3), listed('c', 1)];

  it('is one with its first turn done and most to come', () => {
    expect(follow(undefined, undefined, active, time)).toBe('c');
    expect(follow(undefined, undefined, [listed('a', 0)], time)).toBe('a');
    expect(follow(undefined, undefined, [], time)).toBeUndefined();
  });

  it('is kept until some time after its end', () => {
    const ended = conversation([], { id: 'b', ended: new Date(time - SHOWN_AFTER_END).toISOString() });
    expect(follow('b', ended, active, time)).toBe('b');
    expect(follow('b', ended, active, time + 1)).toBe('c');
    expect(follow('b', ended, [], time + 1)).toBe('b');
    expect(follow('b', undefined, active, time)).toBe('b');
    expect(follow('gone', undefined, active, time)).toBe('c');
  });

  it('can be another one, and counts those on the same starter', () => {
    expect(nextConversation('c', active)).toBe('b');
    expect(nextConversation('a', [active[0]])).toBeUndefined();
    expect(siblings(active[0], [...active, conversation([], { id: 'd', starter: 'other' })])).toBe(2);
  });
});

it('the recent turns are the last that ended well', () => {
  const all = [conversation([turn(1), turn(2)]), conversation([turn(3, { status: 'error' })]), conversation([])];
  expect(recentTurns(all, 5).map((t) => t.number)).toEqual([2, 1]);
  expect(recentTurns(all, 1).map((t) => t.number)).toEqual([2]);
});

describe('the worked example', () => {
  it('has the specification’s results', () => {
    expect(workOut().map(({ prefill, cost, chosen }) => [prefill, cost, chosen])).toEqual([
      [80, 90, false],
      [25, 30, true],
      [90, 99, false],
    ]);
  });
});
