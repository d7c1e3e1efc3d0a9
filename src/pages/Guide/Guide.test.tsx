import { act, render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { MemoryRouter, useLocation } from 'react-router-dom';

import { ClientProvider } from '../../client';
import { bothLanes } from '../../components/Twin/fixtures';
import { violations } from '../../test/axe';
import { column, FakeClient, improved, settings, snapshot, type LaneChange } from '../../test/fixtures';
import { settled } from '../../test/settled';
import digitalocean from '../../vendor/digitalocean.json';
import neutral from '../../vendor/neutral.json';
import Guide from '.';
import { builtIn } from '../../test/builtIn';
import { STORED } from './useProgress';

beforeEach(() => {
  sessionStorage.clear();
  Element.prototype.scrollIntoView = jest.fn();
});

function Address() {
  const { search, hash } = useLocation();
  return <output data-testid="address">{`${search}${hash}`}</output>;
}

async function show(address = '/guide', client = new FakeClient(), events: object[] = []) {
  client.reads.mockImplementation((path) => {
    switch (path) {
      case '/baselines':
        return Promise.resolve({ baselines: [builtIn('h200x3-tp1-llama70b-fp8')] });
      case '/events?lane=main':
        return Promise.resolve({ events });
      default:
        return Promise.reject(new Error(`unexpected ${path}`));
    }
  });
  const shown = render(
    <MemoryRouter initialEntries={[address]} future={{ v7_startTransition: true, v7_relativeSplatPath: true }}>
      <ClientProvider client={client}>
        <Guide />
        <Address />
      </ClientProvider>
    </MemoryRouter>
  );
  if (client.states.value.status === 'loading') {
    act(() => client.lose()); // without a vendor the guide is neutral
  }
  await screen.findByRole('search');
  await settled(client, '/baselines', '/events?lane=main');
  return { client, ...shown };
}

const topics = () => within(screen.getByRole('navigation', { name: 'On this page' })).getAllByRole('link');
const open = (name: string) => userEvent.click(screen.getByRole('link', { name }));
const heads = (level?: number) => screen.getAllByRole('heading', { level }).map((head) => head.textContent);
const section = (name: string | RegExp) => within(screen.getByRole('region', { name }));
const questions = () => section('Questions');
const search = () => screen.getByRole('searchbox', { name: 'Search questions and glossary' });
const count = () => within(screen.getByRole('search')).getByRole('status');
const question = (name: RegExp) => questions().getByRole('button', { name });
const answer = (id: string) => document.getElementById(`question-${id}`);
const started: LaneChange = { state: { driver: 'endpoints' }, baseline: { name: 'h200x3-tp1-llama70b-fp8' } };

describe('the guide', () => {
  it('is complete without the load generator, without a live number', async () => {
    const { container } = await show();
    const shown: unknown[] = [];
    for (const link of topics()) {
      await userEvent.click(link);
      expect(link).toHaveAttribute('aria-current', 'true');
      shown.push(heads(2));
      expect(container.querySelector('[data-word^="live"]')).not.toBeInTheDocument();
      expect(await violations(container)).toEqual([]);
    }
    expect(shown).toEqual([
      ['Who is your visitor?', 'Thirty seconds', neutral.story.title],
      ['Four things to take home'],
      ['The results in plain English'],
      ['What you see on each screen'],
      ['Two scenes to play'],
      ['The demonstration, step by step'],
      ['The recorded deployment'],
      ['Questions', 'Glossary'],
      ['Read on'],
    ]);
  });

  it('has no violation with all answers open', async () => {
    const { client, container } = await show('/guide?visitor=evaluator#questions');
    act(() => client.show(started));
    await userEvent.click(questions().getByRole('button', { name: 'Open all' }));
    expect(questions().getAllByRole('button', { expanded: true })).toHaveLength(21);
    expect(await violations(container)).toEqual([]);
  });

  it('shows no old number as live after a loss', async () => {
    const { client } = await show('/guide#question-slos');
    act(() => client.show(started));
    expect(answer('slos')).toHaveTextContent('TTFT p95 544 ms live');
    act(() => client.lose());
    expect(answer('slos')).toHaveTextContent('TTFT p95 — lost');
    expect(answer('slos')).not.toHaveTextContent('544');
  });

  it('marks a simulated cluster first', async () => {
    const { client } = await show();
    act(() => client.show());
    expect(screen.getByText(/^Simulated cluster:/)).toBeInTheDocument();
    act(() => client.show(started));
    expect(screen.queryByText(/^Simulated cluster:/)).not.toBeInTheDocument();
  });
});

describe('the vendor', () => {
  it('follows the settings, and is absent before they are known', async () => {
    const client = new FakeClient();
    const shown = render(
      <MemoryRouter future={{ v7_startTransition: true, v7_relativeSplatPath: true }}>
        <ClientProvider client={client}>
          <Guide />
        </ClientProvider>
      </MemoryRouter>
    );
    expect(screen.getByText('Opening presenter’s guide')).toBeInTheDocument();
    act(() => client.show({}, { settings: settings({ vendor: 'digitalocean' }) }));
    await screen.findByRole('region', { name: digitalocean.story.title });
    expect(heads()).not.toContain(neutral.story.title);
    shown.unmount();
  });

  it('changes title, questions, visitors and terms, and nothing else', async () => {
    const { client } = await show();
    for (const id of ['takeaways', 'results', 'screens', 'scenes', 'checklist', 'read-on', 'visitors']) {
      await userEvent.click(topics().find((link) => link.getAttribute('href')?.endsWith(`#${id}`)) as HTMLElement);
      const words = document.getElementById(id)?.textContent?.replaceAll('GTC Demo: Optimized LLM Inference', '');
      expect(words).not.toMatch(/DOKS|Droplet|GTC|DigitalOcean/);
    }
    act(() => client.show({}, { settings: settings({ vendor: 'digitalocean' }) }));
    await screen.findByRole('region', { name: digitalocean.story.title });
    expect(heads()).toContain('Thirty seconds');
    expect(screen.getByRole('radio', { name: /^Knew DigitalOcean/ })).toBeInTheDocument();
    await open('Questions and glossary');
    expect(heads()).toContainEqual(expect.stringMatching(/^About DigitalOcean/));
    expect(screen.getByRole('link', { name: 'DOKS' })).toBeInTheDocument();
    await open('On this screen');
    expect(section('What you see on each screen').getByRole('button', { name: /GTC Demo/ })).toBeInTheDocument();
  });

  it.each(['neutral', 'digitalocean'] as const)('%s names where results were recorded', async (vendor) => {
    const { client } = await show('/guide#question-benchmarks');
    act(() => client.show({}, { settings: settings({ vendor }) }));
    const about = vendor === 'neutral' ? /^About your own cluster/ : /^About DigitalOcean/;
    await screen.findByRole('heading', { name: about });
    expect(answer('benchmarks')).toHaveTextContent(/Recorded on DigitalOcean Kubernetes \(DOKS\)/);
  });

  it('from another version is neutral', async () => {
    const { client } = await show();
    act(() => client.show({}, { settings: settings({ vendor: 'acme' as 'neutral' }) }));
    expect(await screen.findByRole('region', { name: neutral.story.title })).toBeInTheDocument();
  });
});

describe('the visitor', () => {
  it('is kept in the address and changes the texts', async () => {
    await show();
    expect(section(/^The platform/).getByText(neutral.story.message)).toBeInTheDocument();
    await userEvent.click(screen.getByRole('radio', { name: /^Came for the router/ }));
    expect(screen.getByTestId('address')).toHaveTextContent('?visitor=technical');
    expect(section(/^Who/).getByText('Say first')).toBeInTheDocument();
    expect(section(/^The platform/).queryByText(neutral.story.message)).not.toBeInTheDocument();
    await userEvent.click(section(/^The platform/).getByRole('button', { name: 'If they ask for proof' }));
    expect(section(/^The platform/).getByText(neutral.story.message)).toBeInTheDocument();
    await userEvent.click(screen.getByRole('radio', { name: /^Anybody/ }));
    expect(screen.getByTestId('address')).toBeEmptyDOMElement();
    await userEvent.click(screen.getByRole('radio', { name: /^Came for the router/ }));
    await open('Questions and glossary');
    expect(screen.getByTestId('address')).toHaveTextContent('?visitor=technical#questions');
    expect(within(answer('router') as HTMLElement).getByText('likely')).toBeInTheDocument();
  });

  it('is read from the address, with its depth', async () => {
    await show('/guide?visitor=newcomer');
    expect(screen.getByRole('radio', { name: /^New to/ })).toBeChecked();
    await open('Take home');
    expect(screen.queryByText(/What others report/)).not.toBeInTheDocument();
    expect(section(/take home/).queryByText(/Not everywhere/)).not.toBeInTheDocument();
  });

  it('has the platform first where the vendor’s file says so', async () => {
    await show('/guide?visitor=returning');
    expect(heads(2).slice(1)).toEqual([neutral.story.title, 'Thirty seconds']);
  });

  it('of an unknown kind is the default', async () => {
    await show('/guide?visitor=robot');
    expect(screen.getByRole('radio', { name: /^Anybody/ })).toBeChecked();
  });
});

describe('answers', () => {
  it('open and close, and quote the snapshot and the table', async () => {
    const { client } = await show('/guide#questions');
    act(() => client.show(started));
    expect(answer('crossover')).not.toHaveTextContent('against');
    await userEvent.click(question(/^Why does round-robin win/));
    expect(answer('crossover')).toHaveTextContent('140, 150, 170, 180 recorded');
    expect(answer('crossover')).toHaveTextContent(
      'At 180 recorded it is 3,143.0 ms recorded against 731.6 ms recorded'
    );
    await userEvent.click(question(/^Why does round-robin win/));
    expect(answer('crossover')).not.toHaveTextContent('3,143');
  });

  it('report where live figures contradict the usual claim', async () => {
    const { client } = await show('/guide#question-crossover');
    const ttft = (percent: number) => ({
      columns: [
        column({
          ttft: {
            p50: { lookup: 'not_recorded' },
            p95: { value: 0.73, lookup: 'exact', improvement: improved(percent) },
          },
        }),
      ],
    });
    act(() => client.show({ ...started, baseline: { ...started.baseline, ...ttft(-330) } }));
    expect(answer('crossover')).toHaveTextContent(
      'That is the case right now: TTFT p95 is 544 ms live, and round-robin has 730.0 ms recorded'
    );
    act(() => client.show({ ...started, baseline: { ...started.baseline, ...ttft(25) } }));
    expect(answer('crossover')).toHaveTextContent('Right now KV-aware routing is ahead');
    await open('Visitor and pitch');
    act(() => client.show({ ...started, baseline: { ...started.baseline, ...ttft(-330) } }));
    expect(section('Thirty seconds').getByText(/Look closely/)).toBeInTheDocument();
    act(() => client.show({ ...started, baseline: { ...started.baseline, ...ttft(25) } }));
    expect(section('Thirty seconds').queryByText(/Look closely/)).not.toBeInTheDocument();
  });

  it('name the sources of their published figures', async () => {
    const { client } = await show('/guide#question-production-ready');
    act(() => client.show({}, { settings: settings({ vendor: 'digitalocean' }) }));
    await screen.findByRole('heading', { name: /^About DigitalOcean/ });
    const sources = digitalocean.questions.flatMap((one) => (one.id === 'production-ready' ? one.sources : []));
    const said = answer('production-ready') as HTMLElement;
    expect(sources.length).toBeGreaterThan(0);
    for (const { title } of digitalocean.sources.filter((source) => sources.includes(source.id))) {
      expect(said).toHaveTextContent(title);
    }
    for (const link of within(said).getAllByRole('link')) {
      expect(link).toHaveAttribute('href', expect.stringMatching(/^https:/));
      expect(link).toHaveAttribute('rel', 'noopener noreferrer');
    }
  });

  it('in the address are open, scrolled to, and can be closed', async () => {
    await show('/guide#question-grove');
    expect(answer('grove')).toHaveTextContent('PodCliques');
    expect(Element.prototype.scrollIntoView).toHaveBeenCalledTimes(1);
    await userEvent.click(question(/^What is Grove/));
    expect(answer('grove')).not.toHaveTextContent('PodCliques');
  });
});

describe('the results', () => {
  it('are computed from the recorded table, including the unfavorable ends', async () => {
    const { client } = await show('/guide#results');
    act(() => client.show(started));
    const results = section('The results in plain English');
    const card = (title: string) => results.getByRole('heading', { name: title }).closest('li');
    expect(card('More from the same GPUs')).toHaveTextContent('1.8–14.0 % derived more tokens a second');
    expect(card('Answers that flow faster')).toHaveTextContent('-5.8 % to 13.3 % derived less time');
    expect(card('Answers that finish sooner')).toHaveTextContent('2.5–14.6 % derived less time, 9.3 % derived less');
    expect(card('More of each prompt cached')).toHaveTextContent('94.7 % derived of prompt tokens');
    expect(card('More of each prompt cached')).toHaveTextContent('under round-robin 88.6 % derived');
  });
});

describe('the screens', () => {
  it('are explained on request, with a link to each page', async () => {
    const { client, container } = await show('/guide#screens');
    act(() => client.show(started));
    const screens = section('What you see on each screen');
    expect(screens.queryByText('Workload controls')).not.toBeInTheDocument();
    await userEvent.click(screens.getByRole('button', { name: 'Dashboard' }));
    expect(screens.getByText('Live against baseline').closest('div')).toHaveTextContent(
      '600 ms configured for TTFT p95'
    );
    expect(screens.getByRole('link', { name: 'Open “Dashboard”' })).toHaveAttribute('href', '/');
    await userEvent.click(screens.getByRole('button', { name: 'Grafana: GTC Demo: Optimized LLM Inference' }));
    const cache = screens.getByText('KV Cache').closest('div');
    expect(cache).toHaveTextContent('88.9–99.2 % recorded under KV-aware routing, 83.9–99.7 % recorded');
    expect(await violations(container)).toEqual([]);
    await userEvent.click(screens.getByRole('button', { name: 'Dashboard' }));
    expect(screens.queryByText('Live against baseline')).not.toBeInTheDocument();
  });
});

describe('the scenes', () => {
  const scene = (name: RegExp) => screen.getByRole('article', { name });
  const shape = (openings: number) => ({ shape: { ...snapshot().lanes[0].state.shape, openings } });

  it('mark a simulated cluster’s speculation as assumed', async () => {
    const { client } = await show('/guide#scenes');
    act(() => client.show());
    expect(scene(/^The router first/)).toHaveTextContent('the screens say “not calibrated”');
    act(() => client.show(started));
    expect(scene(/^The router first/)).not.toHaveTextContent('not calibrated');
  });

  it('show the number of opening texts in use', async () => {
    const { client } = await show('/guide#scenes');
    act(() => client.show({ ...started, state: { ...started.state, ...shape(10) } }));
    expect(scene(/^Every visitor/)).toHaveTextContent('circulation: 10 as configured');
    expect(scene(/^Every visitor/)).toHaveTextContent('Right now conversations share their texts');
    act(() => client.show({ ...started, state: { ...started.state, ...shape(0) } }));
    expect(scene(/^Every visitor/)).toHaveTextContent('circulation: one for each conversation as configured');
  });
});

describe('two lanes', () => {
  it('have a scene, a screen and steps, and one lane has none of them', async () => {
    const { client, container } = await show('/guide#scenes');
    const named = () => screen.queryAllByText(/Two routers, the same conversations/).length;
    const seen: number[] = [];
    for (const lanes of [undefined, bothLanes()]) {
      act(() => client.show({}, lanes));
      await open('On this screen');
      seen.push(screen.queryAllByRole('button', { name: 'Side by side' }).length);
      await open('Checklist');
      seen.push(named());
      await open('Scenes');
      seen.push(named());
    }
    expect(seen).toEqual([0, 0, 0, 1, 1, 1]);
    expect(screen.getByRole('article', { name: /^Two routers/ })).toHaveTextContent(
      'On the left KV-aware configured, on the right Round-robin configured.'
    );
    await open('On this screen');
    await userEvent.click(screen.getByRole('button', { name: 'Side by side' }));
    expect(screen.getByRole('link', { name: 'Open “Side by side”' })).toHaveAttribute('href', '/side-by-side');
    expect(await violations(container)).toEqual([]);
  });
});

describe('the search', () => {
  it('narrows while typing, and counts', async () => {
    await show();
    expect(count()).toHaveTextContent('21 of 21 questions');
    await userEvent.type(search(), 'deadlock');
    expect(count()).toHaveTextContent('1 of 21 questions, 0 of');
    expect(questions().getAllByRole('heading', { level: 4 })).toHaveLength(1);
    expect(screen.getByText('No matching terms. Try fewer or different words.')).toBeInTheDocument();
    await userEvent.type(search(), 'zebra');
    expect(screen.getByText('No matching questions. Try fewer or different words.')).toBeInTheDocument();
    expect(questions().getByRole('button', { name: 'Open all' })).toBeDisabled();
    await userEvent.keyboard('{Escape}');
    expect(search()).toHaveValue('');
    expect(count()).toHaveTextContent('21 of 21 questions');
  });

  it('is left by arrow keys into its results', async () => {
    await show();
    await userEvent.type(search(), 'router temperature');
    await userEvent.keyboard('{ArrowDown}');
    expect(question(/^How does the router decide/)).toHaveFocus();
    await userEvent.keyboard('{Enter}');
    expect(answer('router')).toHaveTextContent('The lowest cost wins');
    await userEvent.keyboard('{ArrowDown}');
    expect(screen.getByRole('link', { name: 'Router temperature' })).toHaveFocus();
    await userEvent.keyboard('{ArrowUp}{ArrowUp}');
    expect(search()).toHaveFocus();
  });

  it('finds terms, which have addresses', async () => {
    await show('/guide?visitor=technical#questions');
    await userEvent.click(screen.getByRole('link', { name: 'TTFT' }));
    expect(screen.getByTestId('address')).toHaveTextContent('?visitor=technical#term-ttft');
  });
});

describe('the checklist', () => {
  const list = () => section(/step by step/);
  const row = (name: RegExp) => within(list().getByRole('heading', { name }).closest('li') as HTMLElement);

  it('ticks itself when the workload starts, under another topic too, and is reset', async () => {
    const { client } = await show();
    act(() => client.show({ state: { running: false, phase: 'stopped', started: undefined } }));
    await open('Checklist');
    expect(row(/^Start the workload \(not seen yet\)/).getByText('Press Start.')).toBeInTheDocument();
    await open('Results');
    act(() => client.show({ state: { settling: true, mode: 'round_robin' } }));
    await open('Checklist');
    expect(row(/^Start the workload \(seen\)/).getByText(/^Running since/)).toBeInTheDocument();
    act(() => client.show({ state: { running: false, phase: 'stopped' } }));
    expect(row(/^Start the workload \(seen\)/).getByText(/^Running since/)).toBeInTheDocument();
    await userEvent.click(list().getByRole('button', { name: 'Reset' }));
    expect(list().getByRole('status')).toHaveTextContent('0 of 18 seen');
  });

  it('survives a change of page, and unavailable storage', async () => {
    const first = await show('/guide#checklist');
    act(() => first.client.show({ state: { settling: true } }));
    first.unmount();
    const second = await show('/guide#checklist');
    expect(row(/^Start the workload \(seen\)/).getByText(/^Running since/)).toBeInTheDocument();
    second.unmount();
    sessionStorage.setItem(STORED, '{broken');
    await show('/guide#checklist');
    expect(list().getByRole('status')).toHaveTextContent('0 of 18 seen');
  });

  it('restores missed steps from the events', async () => {
    const events = [{ id: '1', time: '2026-11-20T09:50:00Z', kind: 'mode_change', text: 'round_robin to kv', by: 'a' }];
    const { client } = await show('/guide#checklist', new FakeClient(), events);
    act(() => client.show({ state: { mode: 'kv', settling: true } }));
    expect(row(/^Change to KV-aware routing \(seen\)/).getByText(/^Changed from Round-robin/)).toBeInTheDocument();
  });
});
