import { act, fireEvent, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { Route, Routes } from 'react-router-dom';

import { Problem, type Conversation } from '../../client';
import { violations } from '../../test/axe';
import { conversation, figures, listOf } from '../../test/conversations';
import { FakeClient } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { stubSizes } from '../../test/sizes';
import { PageBase } from '../navigation';
import Conversations from '.';
import { ROW } from './Row';
import { MAX_WAITING, REFRESH_EVERY } from './useConversations';

beforeEach(() => {
  jest.useFakeTimers();
  jest.setSystemTime(new Date('2026-11-20T12:00:00Z'));
  stubSizes();
  stubScrolling();
});
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

/** Gives elements room to scroll, which jsdom lacks. Scrolling by script fires no event. */
function stubScrolling() {
  jest.spyOn(Element.prototype, 'scrollHeight', 'get').mockReturnValue(1e6);
  Element.prototype.scrollTo = function (this: Element, to?: ScrollToOptions | number) {
    this.scrollTop = typeof to === 'object' ? (to.top ?? this.scrollTop) : this.scrollTop;
  };
}

const range = (n: number) => Array.from({ length: n }, (_, k) => conversation(k));
const pass = (ms: number) => act(() => jest.advanceTimersByTimeAsync(ms));

async function show(all: Conversation[], at = '/app/conversations') {
  const client = new FakeClient();
  const store = { all };
  client.show();
  client.reads.mockImplementation(async (path) => listOf(store.all, path));
  const result = renderWith(
    client,
    <PageBase.Provider value="/app">
      <Routes>
        <Route path="/app/conversations" element={<Conversations />} />
        <Route path="*" element={null} />
      </Routes>
    </PageBase.Provider>,
    at
  );
  await pass(0);
  return { store, ...result };
}

const table = () => screen.getByRole('grid', { name: 'Conversations' });
const rows = () =>
  within(table())
    .getAllByRole('link')
    .map((link) => link.closest('tr') as HTMLTableRowElement);
const box = () => table().parentElement as HTMLElement;
const links = () => within(table()).getAllByRole('link');
const cells = (row: HTMLElement) => texts(row.querySelectorAll('td'));
const user = () => userEvent.setup({ advanceTimers: jest.advanceTimersByTime });

async function scroll(row: number) {
  box().scrollTop = row * ROW;
  fireEvent.scroll(box());
  await pass(0);
}

describe('the list', () => {
  it('has a row for each conversation: those in progress with a turn first, then the newest', async () => {
    const { container } = await show([
      conversation(1),
      conversation(2, { status: 'active', turns_done: 1, ended: undefined, started: '2026-11-20T09:58:55Z' }),
      conversation(3, { status: 'error', error_class: 'stall', turns_done: 2, figures }),
    ]);
    expect(texts(within(table()).getAllByRole('columnheader')).join()).toBe(
      'Status,Topic,Turns,TTFT by turn, ms,Hit rate,Worker,Duration,Started'
    );
    expect(rows().map(cells)).toEqual([
      ['Active', 'Topic 2', '1 of 4', '—', '—', '—', '1 min 5 s', '09:58:55'], // by the load generator's clock
      ['Error', 'Topic 3stalled', '2 of 4', '612 · 224 · —', '40.0 %', '…11, …22', '1 min 30 s', '09:00:03'],
      ['Completed', 'Topic 1', '4 of 4', '—', '—', '—', '1 min 30 s', '09:00:01'],
    ]);
    expect(table()).toHaveAttribute('aria-rowcount', '4');
    expect(links()[0]).toHaveAttribute('href', '/app/conversations/main-run-2');
    jest.useRealTimers();
    expect(await violations(container)).toEqual([]);
  });

  it('is sorted by a column, down, up, and then again by interest', async () => {
    const with2 = conversation(0, { turns_done: 2, turns_planned: 5 });
    await show([with2, conversation(1), conversation(2, { turns_done: 1 })]);
    const turns = () => rows().map((row) => cells(row)[2]);
    const click = () => user().click(screen.getByRole('button', { name: 'Turns' }));
    const sort = () => screen.getByRole('columnheader', { name: /Turns/ }).getAttribute('aria-sort');
    expect([turns(), sort()]).toEqual([['1 of 4', '4 of 4', '2 of 5'], null]);
    await click();
    expect([turns(), sort()]).toEqual([['4 of 4', '2 of 5', '1 of 4'], 'descending']);
    await click();
    expect([turns(), sort()]).toEqual([['1 of 4', '2 of 5', '4 of 4'], 'ascending']);
    await click();
    expect([turns(), sort()]).toEqual([['1 of 4', '4 of 4', '2 of 5'], null]);
  });

  it('requests no more once very many rows wait', async () => {
    const { client, store } = await show(range(100));
    await scroll(40);
    for (let n = 100; n < 100 + MAX_WAITING; n += 150) {
      store.all = range(n + 150);
      await pass(REFRESH_EVERY);
    }
    expect(screen.getByRole('button', { name: '1,000 or more new' })).toBeInTheDocument();
    client.reads.mockClear();
    await pass(10 * REFRESH_EVERY);
    expect(client.reads).not.toHaveBeenCalled();
  });

  it('reports a page that cannot be read, and retries after a pause', async () => {
    const { client, store } = await show(range(500));
    client.reads.mockImplementation((path) =>
      path.includes('cursor')
        ? Promise.reject(new Problem(503, 'The store is busy.'))
        : Promise.resolve(listOf(store.all, path))
    );
    client.reads.mockClear();
    await scroll(195);
    expect(screen.getByText('The store is busy.')).toBeInTheDocument();
    await pass(REFRESH_EVERY - 1);
    expect(client.reads.mock.calls.filter(([path]) => path.includes('cursor'))).toHaveLength(1);
    client.reads.mockImplementation(async (path) => listOf(store.all, path));
    await pass(REFRESH_EVERY);
    expect(screen.queryByText('The store is busy.')).not.toBeInTheDocument();
    await scroll(205);
    expect(rows().length).toBeGreaterThan(0);
  });

  it('keeps its rows when it cannot be read again, and reports it', async () => {
    const { client } = await show(range(3));
    client.reads.mockRejectedValue(new Problem(502, 'The load generator does not respond.'));
    await pass(REFRESH_EVERY);
    expect(screen.getByText('The load generator does not respond.')).toBeInTheDocument();
    expect(rows()).toHaveLength(3);
  });

  it('explains what to do where it is empty', async () => {
    await show([]);
    expect(screen.getByText(/Start the workload/)).toBeInTheDocument();
    expect(screen.queryByRole('grid')).not.toBeInTheDocument();
  });
});

describe('the keyboard', () => {
  it('reaches one row by Tab, and all rows by arrows', async () => {
    await show(range(500));
    const reachable = () => links().filter((link) => link.tabIndex === 0);
    expect(reachable()).toHaveLength(1);
    act(() => reachable()[0].focus());
    await user().keyboard('{ArrowDown}{ArrowDown}');
    expect(document.activeElement).toHaveAttribute('href', '/app/conversations/main-run-497');
    await user().keyboard('{PageDown}{ArrowUp}');
    expect(document.activeElement).toHaveAttribute('href', '/app/conversations/main-run-488');
    expect(reachable()).toEqual([document.activeElement]);
  });

  it('keeps its row while new rows arrive', async () => {
    const { store } = await show(range(10));
    act(() => links()[2].focus());
    store.all = range(13);
    await pass(REFRESH_EVERY);
    expect(document.activeElement).toHaveAttribute('href', '/app/conversations/main-run-7');
    expect(screen.getByRole('button', { name: '3 new' })).toBeInTheDocument();
  });

  it('reaches rows that are not rendered yet', async () => {
    await show(range(150));
    act(() => links()[0].focus());
    await user().keyboard('{End}');
    fireEvent.scroll(box());
    await pass(0);
    expect(document.activeElement).toHaveAttribute('href', '/app/conversations/main-run-0');
    expect(rows().length).toBeLessThan(40);
  });
});

describe('the filters', () => {
  const mixed = [conversation(0), conversation(1, { status: 'error' }), conversation(11)];

  it('ignore an unknown status', async () => {
    const { client } = await show(mixed, '/app/conversations?status=toString');
    expect(rows()).toHaveLength(3);
    expect(client.reads).toHaveBeenCalledWith(expect.not.stringContaining('status'));
  });

  it('report that nothing matches', async () => {
    await show(mixed, '/app/conversations?topic=nothing');
    expect(screen.getByText(/No matching conversations/)).toBeInTheDocument();
  });
});
