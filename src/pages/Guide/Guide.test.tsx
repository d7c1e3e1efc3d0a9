import { act, render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { MemoryRouter } from 'react-router-dom';

import { ClientProvider, type HeadlineKind } from '../../client';
import { bothLanes } from '../../components/Twin/fixtures';
import { violations } from '../../test/axe';
import { builtIn } from '../../test/builtIn';
import { column, FakeClient, headline, settings, type LaneChange } from '../../test/fixtures';
import { answered, settled } from '../../test/settled';
import digitalocean from '../../vendor/digitalocean.json';
import neutral from '../../vendor/neutral.json';
import Guide from '.';

beforeEach(() => {
  Element.prototype.scrollIntoView = jest.fn();
});

async function show(address = '/guide') {
  const client = new FakeClient();
  client.reads.mockResolvedValue({ baselines: [builtIn('h200x3-tp1-llama70b-fp8')] });
  const shown = render(
    <MemoryRouter initialEntries={[address]} future={{ v7_startTransition: true, v7_relativeSplatPath: true }}>
      <ClientProvider client={client}>
        <Guide />
      </ClientProvider>
    </MemoryRouter>
  );
  expect(screen.getByText('Opening presenter’s guide')).toBeInTheDocument();
  act(() => client.lose()); // without a vendor the guide is neutral
  await screen.findByRole('search');
  await settled(client, '/baselines');
  return { client, ...shown };
}

const contents = () => within(screen.getByRole('navigation', { name: 'On this page' }));
const open = (name: string) => userEvent.click(contents().getByRole('link', { name }));
const entry = (id: string) => document.getElementById(id);
const started: LaneChange = { state: { driver: 'endpoints' }, baseline: { name: 'h200x3-tp1-llama70b-fp8' } };

it('the guide is complete without the load generator, without a live number', async () => {
  const { container } = await show();
  const chapters = contents().getAllByRole('link');
  expect(chapters).toHaveLength(17);
  for (const { textContent } of chapters) {
    await open(textContent ?? '');
    expect(screen.getByRole('heading', { level: 2 })).toHaveTextContent(textContent ?? '');
    expect(container.querySelector('[data-word^="live"]')).not.toBeInTheDocument();
  }
  await open('What you see on each screen');
  expect(await violations(container)).toEqual([]);
});

it('the vendor follows the settings', async () => {
  const { client } = await show('/guide#platform');
  expect(entry(`question-${neutral.questions[0].id}`)).toBeInTheDocument();
  act(() => client.show({}, { settings: settings({ vendor: 'digitalocean' }) }));
  await screen.findByRole('link', { name: digitalocean.story.title });
  expect(entry(`question-${digitalocean.questions[0].id}`)).toBeInTheDocument();
  act(() => client.show({}, { settings: settings({ vendor: 'acme' as 'neutral' }) }));
  await screen.findByRole('link', { name: neutral.story.title });
  await answered();
});

it('the spoken text has whole sentences, with the kind of each figure below', async () => {
  const { client } = await show('/guide#talk');
  const text = () => screen.getByRole('region', { name: 'Three minutes' });
  expect(text()).toHaveTextContent('Under KV-aware routing it was 446 ms. That is 32.0 % sooner.');
  expect(text()).toHaveTextContent('446 ms recorded 32.0 % derived');
  expect(text()).not.toHaveTextContent('conversations are running at once');
  act(() => client.show(started));
  expect(text()).toHaveTextContent('On this screen 120 conversations are running at once.');
});

describe('figures', () => {
  it('are those of the snapshot and the table, and no old number is live after a loss', async () => {
    const { client } = await show('/guide#question-slos');
    act(() => client.show(started));
    expect(entry('question-slos')).toHaveTextContent('TTFT p95 544 ms live');
    expect(entry('question-crossover')).toHaveTextContent('3,143 ms recorded against 732 ms recorded');
    act(() => client.lose());
    expect(entry('question-slos')).toHaveTextContent('TTFT p95 — lost');
    expect(entry('question-slos')).not.toHaveTextContent('544');
  });

  it('that contradict the usual claim are reported', async () => {
    const { client } = await show('/guide#question-crossover');
    const says = (kind: HeadlineKind): LaneChange => {
      const p95 = { value: 0.73, lookup: 'exact' as const };
      const columns = [column({ ttft: { p50: { lookup: 'not_recorded' }, p95 } })];
      const lines = [{ against: 'recorded' as const, metric: 'ttft_p95' as const, kind, text: '' }];
      return { ...started, baseline: { ...started.baseline, columns, headline: headline({ lines }) } };
    };
    act(() => client.show(says('worse')));
    expect(entry('question-crossover')).toHaveTextContent('That is the case right now: TTFT p95 is 544 ms live');
    act(() => client.show(says('better')));
    expect(entry('question-crossover')).toHaveTextContent('Right now KV-aware routing is ahead');
  });
});

it('a simulated cluster is marked first', async () => {
  const { client } = await show();
  act(() => client.show());
  expect(screen.getByText(/^Simulated cluster:/)).toBeInTheDocument();
  act(() => client.show(started));
  expect(screen.queryByText(/^Simulated cluster:/)).not.toBeInTheDocument();
});

it('two lanes have a scene, steps and a screen, and one lane has none of them', async () => {
  const { client } = await show();
  const seen: number[] = [];
  for (const lanes of [undefined, bothLanes()]) {
    act(() => client.show({}, lanes));
    for (const [chapter, name] of [
      ['Scenes to play', /^Two routers/],
      ['The demonstration, step by step', /^Two routers/],
      ['What you see on each screen', 'Side by side'],
    ] as const) {
      await open(chapter);
      seen.push(screen.queryAllByRole('article', { name }).length);
    }
  }
  expect(seen).toEqual([0, 0, 0, 1, 1, 1]);
});
