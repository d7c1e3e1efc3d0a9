import { act, fireEvent, screen, within } from '@testing-library/react';
import { Route, Routes } from 'react-router-dom';

import { Problem, type Conversation as Data, type Starter } from '../../../client';
import { violations } from '../../../test/axe';
import { conversation, listOf, turn } from '../../../test/conversations';
import { FakeClient, laneSnapshot } from '../../../test/fixtures';
import { renderWith } from '../../../test/render';
import { stubSizes } from '../../../test/sizes';
import Conversation from '.';
import { LONG } from './Message';
import { FOLLOW_EVERY, RETRY_EVERY } from './useConversation';

beforeEach(() => {
  jest.useFakeTimers();
  jest.setSystemTime(new Date('2026-11-20T12:00:00Z'));
  stubSizes();
});
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});

const pass = (ms: number) => act(() => jest.advanceTimersByTimeAsync(ms));

const ARTICLE =
  '# GPU architecture\n\nMany small cores.\nThey wait together.\n\n## Warps\n\nC# and #1 are no headings.';

/** Shows number 7 from the store, among ten that have ended. */
async function show(first: Data | Problem, address = '/conversations/main-run-7') {
  const client = new FakeClient();
  const store: { now: Data | Problem; all: Data[]; article: (path: string) => Promise<Starter> } = {
    now: first,
    all: [],
    article: async () => ({ id: 'gpu', topic: 'GPU architecture', text: ARTICLE }),
  };
  store.all = Array.from({ length: 10 }, (_, k) => conversation(k));
  const workers = [{ id: '11', name: 'worker-1', gpus: [] }];
  client.show({ cluster: { ...laneSnapshot().cluster, workers } });
  client.reads.mockImplementation(async (path) => {
    if (path.startsWith('/conversations?')) {
      return listOf(store.all, path);
    }
    if (path.startsWith('/starters/')) {
      return store.article(path);
    }
    if (store.now instanceof Problem) {
      throw store.now;
    }
    return store.now;
  });
  const result = renderWith(
    client,
    <Routes>
      <Route path="/conversations/:id" element={<Conversation />} />
      <Route path="/conversations" element={<p>The list</p>} />
    </Routes>,
    address
  );
  await pass(0);
  const articles = () => client.reads.mock.calls.filter(([path]) => path.startsWith('/starters/'));
  const asked = () => client.reads.mock.calls.filter(([path]) => path === '/conversations/main-run-7').length;
  return { store, asked, articles, ...result };
}

const done = conversation(7, { topic: 'GPU architecture', starter: 'gpu', turns: [turn(1), turn(2)] });
const active = (change: Partial<Data> = {}) =>
  conversation(7, { status: 'active', turns_done: 1, ended: undefined, turns: [turn(1)], ...change });
const streaming = (assistant_message: string, ttft?: number) => ({
  number: 2,
  started: '2026-11-20T09:59:50Z',
  ttft,
  worker: '11',
  user_message: 'And why?',
  assistant_message,
});

const box = () => screen.getByRole('group', { name: /^Transcript/ });
const turns = () => within(box()).getAllByRole('listitem');

describe('a conversation that has ended', () => {
  it('shows text as text', async () => {
    const { container } = await show(
      conversation(7, { turns: [turn(1, { assistant_message: 'a\n\n<img src=x> **b**' })] })
    );
    expect(container.querySelector('img[src="x"]')).toBeNull();
    expect(within(box()).getByText(/<img src=x> \*\*b\*\*/)).toBeInTheDocument();
  });

  it('folds a long message of the user, never an answer', async () => {
    const long = 'word '.repeat(LONG);
    await show(conversation(7, { turns: [turn(1, { user_message: long, assistant_message: long })] }));
    const unfold = screen.getByRole('button', { name: 'Show all 6,000 characters' });
    expect(unfold).toHaveAttribute('aria-expanded', 'false');
    const before = box().textContent?.length ?? 0;
    fireEvent.click(unfold);
    expect(screen.getByRole('button', { name: 'Show less' })).toHaveAttribute('aria-expanded', 'true');
    expect((box().textContent?.length ?? 0) - before).toBeGreaterThan(5000);
  });

  it('marks a turn that failed, with its class and message', async () => {
    const why = {
      error_class: 'stall',
      error_message: 'no data for 30 s',
      assistant_message: 'Half of an ans',
    } as const;
    const failed = turn(2, { status: 'error', counted: false, ttft: undefined, ...why });
    await show(conversation(7, { status: 'error', turns_done: 1, turns: [turn(1), failed] }));
    for (const words of ['Turn 2 failed: stalled', 'no data for 30 s', 'Half of an ans', 'Not counted: it failed']) {
      expect(turns()[1]).toHaveTextContent(words);
    }
    expect(screen.getByRole('img', { name: /turn 2, .*failed/ })).toBeInTheDocument();
  });

  it('shows a cancelled turn as no error', async () => {
    const cancelled = turn(1, { status: 'cancelled', counted: false });
    await show(conversation(7, { status: 'cancelled', turns_done: 0, turns: [cancelled] }));
    expect(turns()[0]).toHaveTextContent('This is not an error.');
  });
});

const toggle = () => screen.getByRole('button', { name: /^(Show|Hide) the article$/ });
const text = () => screen.queryByRole('group', { name: 'Article: GPU architecture, scrollable' });
const press = async (button: HTMLElement) => {
  fireEvent.click(button);
  await pass(0);
};

describe('the article that it begins with', () => {
  it('is one line, and not loaded, until it is opened', async () => {
    const { articles } = await show(done);
    await pass(10 * FOLLOW_EVERY);
    expect(toggle()).toHaveAttribute('aria-expanded', 'false');
    expect(toggle()).toHaveAccessibleName('Show the article');
    expect(text()).not.toBeInTheDocument();
    expect(articles()).toEqual([]);
  });

  it('precedes the message of the user, with its paragraphs and its headings as plain lines', async () => {
    const { articles } = await show(conversation(7, { ...done, lane: 'twin', starter: 'gpu/1' }));
    await press(toggle());
    expect(articles()).toEqual([['/starters/gpu%2F1?lane=twin']]);
    expect(toggle()).toHaveAttribute('aria-expanded', 'true');
    expect(text()?.textContent).toBe(ARTICLE.replace(/^#+ /gm, ''));
    expect(within(turns()[0]).getByText('Warps').tagName).toBe('B');
    expect(text()?.compareDocumentPosition(screen.getByText('Question 1'))).toBe(Node.DOCUMENT_POSITION_FOLLOWING);
    expect(turns()[0]).toHaveTextContent('Shown as in the current corpus.');
    expect(text()).toHaveAttribute('tabindex', '0'); // to be scrolled from the keyboard
    await press(toggle());
    expect(text()).not.toBeInTheDocument();
    await press(toggle());
    expect(text()).toBeInTheDocument();
    expect(articles()).toHaveLength(1);
  });

  it('shows that it is loading, and is not requested twice meanwhile', async () => {
    const { store, articles } = await show(done);
    let arrive: (article: Starter) => void = () => undefined;
    store.article = () => new Promise((resolve) => (arrive = resolve));
    await press(toggle());
    expect(screen.getByText('Loading the article…')).toBeInTheDocument();
    await press(toggle());
    await press(toggle());
    expect(articles()).toHaveLength(1);
    arrive({ id: 'gpu', topic: 'GPU architecture', text: 'It came.' });
    await pass(0);
    expect(text()).toHaveTextContent('It came.');
    expect(screen.queryByText('Loading the article…')).not.toBeInTheDocument();
  });

  it('reports why it cannot be shown, and retries', async () => {
    const { store, articles } = await show(done);
    const { article } = store;
    store.article = () => Promise.reject(new Problem(404, 'The corpus in use has no starter "gpu".'));
    await press(toggle());
    expect(screen.getByRole('alert')).toHaveTextContent('The corpus in use has no starter "gpu".');
    expect(turns()[0]).not.toHaveTextContent('as in the current corpus');
    store.article = article;
    await press(screen.getByRole('button', { name: 'Try again' }));
    expect(articles()).toHaveLength(2);
    expect(text()).toBeInTheDocument();
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
    expect(toggle()).toHaveFocus(); // the pressed button was removed
  });

  it('stays open and in view while its turn ends', async () => {
    const { store, articles } = await show(
      active({ turns_done: 0, turns: [], live: { ...streaming('a', 0.2), number: 1 } })
    );
    jest.spyOn(Element.prototype, 'scrollHeight', 'get').mockReturnValue(2000); // with the article
    fireEvent.click(toggle());
    await pass(0);
    const before = box().scrollTop;
    store.now = active();
    await pass(FOLLOW_EVERY);
    expect(turns()[0]).toHaveTextContent('Answer 1');
    expect(screen.getByRole('group', { name: /^Article/ })).toHaveTextContent('Many small cores.');
    expect(articles()).toHaveLength(1);
    expect(box().scrollTop).toBe(before);
  });
});

describe('accessibility', () => {
  const found = async (container: Element) => {
    jest.useRealTimers();
    const result = await violations(container);
    jest.useFakeTimers();
    return result;
  };

  it('has no violation while the article is folded, failed or open', async () => {
    const { container, store } = await show(done);
    expect(toggle()).toHaveAttribute('aria-expanded', 'false');
    expect(await found(container)).toEqual([]);
    const { article } = store;
    store.article = () => Promise.reject(new Problem(0, 'No answer.'));
    await press(toggle());
    expect(screen.getByRole('alert')).toHaveTextContent('No answer.');
    expect(await found(container)).toEqual([]);
    store.article = article;
    await press(screen.getByRole('button', { name: 'Try again' }));
    expect(text()).toBeInTheDocument();
    expect(await found(container)).toEqual([]);
  });
});

describe('a conversation in progress', () => {
  it('is updated until its end', async () => {
    const { store, asked } = await show(active({ live: streaming('') }));
    expect(turns()[1]).toHaveTextContent('Waiting for the first token');
    expect(turns()[1]).toHaveTextContent('10.0 s'); // by the load generator's clock
    store.now = active({ live: streaming('Because', 0.21) });
    await pass(FOLLOW_EVERY);
    expect(turns()[1]).toHaveTextContent('Answering');
    expect(within(turns()[1]).getByText('Because')).toHaveAttribute('aria-busy', 'true');
    expect(screen.getByRole('img', { name: /turn 2 210 ms, now; turn 3, planned/ })).toBeInTheDocument();
    store.now = active({ turns_done: 2, turns: [turn(1), turn(2)] });
    await pass(FOLLOW_EVERY);
    expect(turns()[1]).toHaveTextContent('Answer 2');
    store.now = conversation(7, { turns: [turn(1), turn(2)] });
    await pass(FOLLOW_EVERY);
    expect(screen.getByText('Completed')).toBeInTheDocument();
    const before = asked();
    await pass(10 * FOLLOW_EVERY);
    expect(asked()).toBe(before);
  });

  it('scrolls with its end only while the end is in view', async () => {
    jest.spyOn(Element.prototype, 'scrollHeight', 'get').mockReturnValue(2000);
    const { store } = await show(active({ live: streaming('a', 0.2) }));
    expect(box().scrollTop).toBe(2000);
    box().scrollTop = 300;
    fireEvent.scroll(box());
    store.now = active({ live: streaming('a b', 0.2) });
    await pass(FOLLOW_EVERY);
    expect(box().scrollTop).toBe(300);
    box().scrollTop = 1400; // 2000 less the visible 600
    fireEvent.scroll(box());
    store.now = active({ live: streaming('a b c', 0.2) });
    await pass(FOLLOW_EVERY);
    expect(box().scrollTop).toBe(2000);
  });

  it('keeps its last state with a notice while it cannot be read, and continues afterwards', async () => {
    const { store, asked } = await show(active());
    store.now = new Problem(0, 'No answer.');
    await pass(FOLLOW_EVERY);
    expect(screen.getByText(/No answer. The last known state is shown./)).toBeInTheDocument();
    expect(turns()).toHaveLength(1);
    await pass(0);
    const before = asked();
    await pass(RETRY_EVERY - 1);
    expect(asked()).toBe(before);
    store.now = done;
    await pass(RETRY_EVERY);
    expect(screen.queryByText(/No answer/)).not.toBeInTheDocument();
    expect(turns()).toHaveLength(2);
  });
});

describe('no conversation', () => {
  it.each([
    [active({ turns_done: 0, turns: [] }), 'Its first turn is about to start.'],
    [conversation(7, { turns: [] }), 'No turn of this conversation was stored.'],
  ])('has turns yet, or had any stored (%#)', async (first, words) => {
    await show(first);
    expect(screen.getByText(words)).toBeInTheDocument();
  });

  it('is reported in words, and not requested again', async () => {
    const { asked } = await show(new Problem(404, 'not found'));
    expect(screen.getByText('Conversation not found')).toBeInTheDocument();
    expect(screen.getByText(/“main-run-7”/)).toBeInTheDocument();
    await pass(10 * RETRY_EVERY);
    expect(asked()).toBe(1);
    fireEvent.click(screen.getByRole('link', { name: 'All conversations' }));
    expect(screen.getByText('The list')).toBeInTheDocument();
  });
});

describe('the ways on', () => {
  it('use the filter of the list, even where the conversation no longer matches it', async () => {
    const { store } = await show(done, '/conversations/main-run-7?status=error');
    store.all = store.all.map((c) => (c.number % 3 ? c : { ...c, status: 'error' })); // 0, 3, 6, 9
    await pass(RETRY_EVERY);
    const links = ['← Newer', 'Older →', 'All conversations'].map((name) => screen.getByRole('link', { name }));
    expect(links.map((link) => link.getAttribute('href'))).toEqual([
      '/conversations/main-run-9?status=error',
      '/conversations/main-run-6?status=error',
      '/conversations?status=error',
    ]);
  });

  it('read further pages until the older one is found', async () => {
    const { store } = await show(done);
    store.all = Array.from({ length: 700 }, (_, k) => conversation(k));
    await pass(RETRY_EVERY);
    expect(screen.getByRole('link', { name: 'Older →' })).toHaveAttribute('href', '/conversations/main-run-6');
    expect(screen.getByRole('link', { name: '← Newer' })).toHaveAttribute('href', '/conversations/main-run-8');
  });

  it('are disabled where there is none', async () => {
    const { store } = await show(done);
    store.all = [conversation(7)];
    await pass(RETRY_EVERY);
    expect(screen.queryByRole('link', { name: '← Newer' })).not.toBeInTheDocument();
    expect(screen.queryByRole('link', { name: 'Older →' })).not.toBeInTheDocument();
  });
});
