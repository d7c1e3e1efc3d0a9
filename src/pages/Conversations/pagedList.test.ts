/** @jest-environment node */
import { conversation, listOf } from '../../test/conversations';
import type { Conversation } from '../../client';
import { PagedList, orderOf, PAGE } from './pagedList';

const range = (from: number, to: number, change?: Partial<Conversation>) =>
  Array.from({ length: to - from }, (_, i) => conversation(from + i, change));

/** Returns a list over conversations that the test changes. */
function pagedListOf(all: Conversation[], status = '') {
  const store = { all };
  const load = jest.fn(async (cursor?: string) =>
    listOf(store.all, `/conversations?status=${status}&limit=${PAGE}${cursor ? `&cursor=${cursor}` : ''}`)
  );
  const list = new PagedList(load);
  return { list, store, load, numbers: () => list.get().rows.map(({ number }) => number) };
}

const descending = (from: number, to: number) => Array.from({ length: from - to }, (_, i) => from - 1 - i);

describe('a paged list', () => {
  it('begins with the newest and reads further pages', async () => {
    const { list, numbers } = pagedListOf(range(0, 450));
    await list.refresh();
    expect(numbers()).toEqual(descending(450, 250));
    expect(list.get().more).toBe(true);
    await list.older();
    await list.older();
    expect(numbers()).toEqual(descending(450, 0));
    expect(list.get().more).toBe(false);
    await list.older();
    expect(numbers()).toHaveLength(450);
  });

  it('puts new ones on top, and loses none between the pages', async () => {
    const { list, store, numbers } = pagedListOf(range(0, 500));
    await list.refresh();
    await list.older();
    for (let n = 501; n <= 740; n += 7) {
      store.all = range(0, n);
      await list.refresh();
    }
    expect(numbers()).toEqual(descending(739, 100));
    await list.older();
    expect(numbers()).toEqual(descending(739, 0));
  });

  it('begins anew where more were added than one answer contains', async () => {
    const { list, store, numbers } = pagedListOf(range(0, 300));
    await list.refresh();
    store.all = range(0, 900);
    await list.refresh();
    expect(numbers()).toEqual(descending(900, 700));
    await list.older();
    expect(numbers()).toEqual(descending(900, 500));
  });

  it('reports changes only, and keeps the rows that did not change', async () => {
    const { list, store } = pagedListOf(range(0, 10));
    await list.refresh();
    const before = list.get();
    const listener = jest.fn();
    const end = list.subscribe(listener);
    store.all = range(0, 10);
    await list.refresh();
    expect(listener).not.toHaveBeenCalled();
    expect(list.get()).toBe(before);
    store.all = [...range(0, 9), conversation(9, { turns_done: 3 })];
    await list.refresh();
    expect(listener).toHaveBeenCalledTimes(1);
    expect(list.get().rows[0]).toMatchObject({ turns_done: 3 });
    expect(list.get().rows[1]).toBe(before.rows[1]);
    end();
    store.all = range(0, 12);
    await list.refresh();
    expect(listener).toHaveBeenCalledTimes(1);
  });

  it('reads the visible page again while some on it are in progress', async () => {
    const { list, store, load } = pagedListOf([...range(0, 200, { status: 'active' }), ...range(200, 400)]);
    await list.refresh();
    await list.older();
    store.all = range(0, 400);
    await list.refresh('main-run-300');
    expect(list.get().rows[250]).toMatchObject({ status: 'active' });
    await list.refresh('main-run-100');
    expect(list.get().rows.every(({ status }) => status === 'completed')).toBe(true);
    load.mockClear();
    await list.refresh('main-run-100'); // all of them have ended
    expect(load).toHaveBeenCalledTimes(1);
  });

  it('drops those that no longer match a status, without duplicates', async () => {
    const { list, store, numbers } = pagedListOf(range(0, 500, { status: 'active' }), 'active');
    await list.refresh();
    await list.older();
    store.all = [...range(0, 400, { status: 'active' }), ...range(400, 500)];
    await list.refresh();
    expect(numbers()).toEqual(descending(400, 100));
    store.all = [...range(0, 120, { status: 'active' }), ...range(120, 500)];
    await list.refresh('main-run-110');
    expect(numbers()).toEqual(descending(120, 0));
  });

  it('inserts those that now match a status', async () => {
    const { list, store, numbers } = pagedListOf(
      range(0, 300).map((c) => (c.number % 2 ? c : { ...c, status: 'active' })),
      'completed'
    );
    await list.refresh();
    store.all = range(0, 300);
    await list.refresh();
    expect(numbers().slice(0, 200)).toEqual(descending(300, 100));
    expect(new Set(numbers()).size).toBe(numbers().length);
  });

  it('requests the same older page once', async () => {
    const { list, load } = pagedListOf(range(0, 500));
    await list.refresh();
    await Promise.all([list.older(), list.older()]);
    expect(load).toHaveBeenCalledTimes(2);
    expect(list.get().rows).toHaveLength(400);
  });

  it('can be read again after a failure', async () => {
    const { list, load } = pagedListOf(range(0, 500));
    await list.refresh();
    load.mockRejectedValueOnce(new Error('lost'));
    await expect(list.older()).rejects.toThrow('lost');
    await list.older();
    expect(list.get().rows).toHaveLength(400);
  });

  it('drops rows far from the top, and reads them again', async () => {
    const { list, numbers } = pagedListOf(range(0, 1000));
    await list.refresh();
    for (let i = 0; i < 4; i++) {
      await list.older();
    }
    list.trim();
    expect(numbers()).toEqual(descending(1000, 600));
    expect(list.get().more).toBe(true);
    await list.older();
    expect(numbers()).toEqual(descending(1000, 400));
  });

  it('is empty where there is nothing', async () => {
    const { list } = pagedListOf([]);
    await list.refresh();
    await list.older();
    expect(list.get()).toEqual({ rows: [], more: false });
  });
});

describe('the order', () => {
  it('is by the start to the nanosecond, then by the id', () => {
    const order = (started: string, id = 'a') => orderOf({ started, id });
    const ascending = [
      order('2026-11-20T09:00:00Z'),
      order('2026-11-20T09:00:00.05Z'),
      order('2026-11-20T09:00:00.4Z'),
      order('2026-11-20T09:00:00.400000001Z'),
      order('2026-11-20T09:00:00.400000001Z', 'b'),
      order('2026-11-20T09:00:01Z'),
    ];
    expect([...ascending].sort()).toEqual(ascending);
    expect(new Set(ascending).size).toBe(ascending.length);
  });
});
