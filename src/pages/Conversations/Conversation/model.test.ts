/** @jest-environment node */
import type { LiveTurn } from '../../../client';
import { conversation, turn } from '../../../test/conversations';
import { bars, figures, namer, sharedStarter, summary, uncountedReason, workersOf } from './model';

const live = (number: number, change: Partial<LiveTurn> = {}): LiveTurn => ({
  number,
  started: '2026-11-20T09:01:00Z',
  user_message: 'Why?',
  assistant_message: '',
  ...change,
});

describe('the bars', () => {
  it('are of the past, the streaming and the planned turns', () => {
    const all = bars(
      conversation(7, { status: 'active', turns_planned: 5, turns: [turn(1), turn(2)], live: live(3, { ttft: 0.2 }) })
    );
    expect(all).toEqual([
      { turn: 1, ttft: 0.612, cached: 0, state: 'ok' },
      { turn: 2, ttft: 0.224, cached: 0.99, state: 'ok' },
      { turn: 3, ttft: 0.2, state: 'streaming' },
      { turn: 4, state: 'planned' },
      { turn: 5, state: 'planned' },
    ]);
  });

  it('count a turn once that is both stored and streaming', () => {
    const all = bars(conversation(7, { status: 'active', turns_planned: 2, turns: [turn(1)], live: live(1) }));
    expect(all.map(({ state }) => state)).toEqual(['ok', 'planned']);
  });

  it('include no planned turn once the conversation has ended', () => {
    const failed = turn(2, { status: 'error', ttft: undefined, cached_tokens: undefined });
    const all = bars(conversation(7, { status: 'error', turns: [turn(1), failed] }));
    expect(all[1]).toEqual({ turn: 2, state: 'failed' });
    expect(all).toHaveLength(2);
  });

  it('have no cached share of an empty prompt', () => {
    const [bar] = bars(conversation(7, { turns: [turn(1, { prompt_tokens: 0, status: 'cancelled' })] }));
    expect(bar).toMatchObject({ cached: undefined, state: 'cancelled' });
  });

  it.each([
    [[], 'The first turn has no first token yet.'],
    [[turn(1, { status: 'error', ttft: undefined })], 'The first turn ended without a first token.'],
    [[turn(1)], 'First turn 612 ms; no later turns yet.'],
    [[turn(1), turn(2)], 'First turn 612 ms; later ones 224 ms.'],
    [[turn(1), turn(2), turn(3, { ttft: 0.3 })], 'First turn 612 ms; later ones 224 to 300 ms.'],
    [[turn(1), turn(2, { ttft: 0.9 })], 'First turn 612 ms; later ones 900 ms.'],
  ])('say what they show (%#)', (turns, words) => {
    expect(summary(bars(conversation(7, { turns })))).toBe(words);
  });
});

describe('a first turn', () => {
  const words = (change = {}) => sharedStarter(bars(conversation(7, { turns: [turn(1, change)] })));

  it('is explained where its starter was cached already', () => {
    expect(words({ cached_tokens: 3960 })).toMatch(/found 99.0 % of its prompt in cache/);
  });

  it('is not explained where it was not cached, or caching is not reported', () => {
    expect(words()).toBeUndefined();
    expect(words({ cached_tokens: undefined })).toBeUndefined();
    expect(sharedStarter([])).toBeUndefined();
  });
});

describe('the figures of a turn', () => {
  const name = namer([{ id: '11', name: 'worker-1', gpus: [] }]);
  const texts = (change = {}) =>
    figures(turn(2, change), name).map(([, text, remark]) => (remark ? `${text} | ${remark}` : text));

  it('are formatted with their remarks', () => {
    expect(texts()).toEqual([
      '224 ms',
      '22.1 ms | estimated',
      '830',
      '20,310 ms',
      '4,000 tokens | 3,960 cached (99.0 %)',
      'worker-1',
      'KV-aware',
    ]);
  });

  it('have the time to the answer where reasoning comes before it, and an estimate is marked', () => {
    expect(texts({ first_answer: 2.5, token_source: 'chunks' }).slice(0, 4)).toEqual([
      '224 ms',
      '2,500 ms',
      '22.1 ms | estimated',
      '830 | estimated',
    ]);
  });

  it('are dashes where there are none', () => {
    const none = { ttft: undefined, itl_p50: undefined, output_tokens: undefined, latency: undefined };
    const unknown = { prompt_tokens: undefined, cached_tokens: undefined, worker: undefined };
    expect(texts({ ...none, ...unknown })).toEqual(['—', '—', '—', '—', '—', '—', 'KV-aware']);
  });

  it('report that the server does not report cached tokens', () => {
    expect(texts({ cached_tokens: undefined })[4]).toBe('4,000 tokens | cached tokens not reported');
  });

  it('name a worker that is no longer listed by the end of its id', () => {
    expect(texts({ worker: '12679166390972833449' })[5]).toBe('…833449');
  });

  it('report why a turn does not count', () => {
    expect(uncountedReason(turn(1))).toBeUndefined();
    expect(uncountedReason(turn(1, { counted: false }))).toMatch(/settled step/);
    expect(uncountedReason(turn(1, { counted: false, status: 'error' }))).toBe('it failed');
    expect(uncountedReason(turn(1, { counted: false, status: 'cancelled' }))).toMatch(/a stop/);
  });
});

describe('the workers of a conversation', () => {
  it('are named once each, in the order of the turns', () => {
    const turns = [turn(1), turn(2, { worker: '22' }), turn(3), turn(4, { worker: undefined })];
    expect(workersOf(conversation(7, { turns, live: live(5, { worker: '33' }) }))).toEqual(['11', '22', '33']);
    expect(workersOf(conversation(7))).toEqual([]);
  });
});
