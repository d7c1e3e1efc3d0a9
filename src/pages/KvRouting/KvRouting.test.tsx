import { act, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { Problem, type DecisionList } from '../../client';
import { laneChange } from '../../components/Diagram/fixtures';
import { shadow } from '../../components/OtherRouters/fixtures';
import { violations } from '../../test/axe';
import { builtIn } from '../../test/builtIn';
import { FakeClient, type LaneChange } from '../../test/fixtures';
import { renderWith } from '../../test/render';
import { answered, settled } from '../../test/settled';
import { conversation, decision, turn } from './fixtures';
import KvRouting from '.';

const listed: DecisionList = {
  source: 'simulated',
  decisions: [
    decision({ seconds: 3 }),
    decision({ seconds: 2, request_id: 'main-abc-9-1', chosen: 1 }),
    decision({ seconds: 1 }),
  ],
};
const silent: DecisionList = { source: '', decisions: [], message: 'this target does not report its decisions' };
const grown = conversation([turn(1), turn(2)]);

interface Answers {
  decisions?: DecisionList | Problem;
  active?: Array<typeof grown>;
  detail?: typeof grown | Problem;
}

function answer(client: FakeClient, { decisions = listed, active = [grown], detail = grown }: Answers) {
  const give = (value: unknown) => (value instanceof Problem ? Promise.reject(value) : Promise.resolve(value));
  client.reads.mockImplementation((path) => {
    if (path.startsWith('/decisions')) {
      return give(decisions);
    }
    if (path === '/baselines') {
      return give({ baselines: [builtIn('h200x3-tp1-llama70b-fp8')] });
    }
    if (path.startsWith('/shadow')) {
      return give({ ...shadow(), source: 'none', message: 'shadow.enabled is false' });
    }
    return path.startsWith('/conversations?') ? give({ conversations: active }) : give(detail);
  });
}

async function show(answers: Answers = {}, lane: LaneChange = laneChange(3)) {
  const client = new FakeClient();
  answer(client, answers);
  client.show(lane);
  const result = renderWith(client, <KvRouting />, '/');
  await settled(client, '/decisions?limit=30&lane=main', '/conversations?');
  return result;
}

const candidates = () => screen.findByRole('table', { name: 'Every worker as seen by the router' });
const detailOf = (name: RegExp) => screen.getByRole('heading', { level: 3, name });

describe('the decisions', () => {
  it('show the newest in full: overlap, load, cost, and the formula with its numbers', async () => {
    const { container } = await show();
    const rows = within(await candidates()).getAllByRole('row');
    expect(rows[2]).toHaveTextContent('worker-1chosen75 blocks5 4 requests30.01 × 800 / 32 + 5');
    expect(rows[1]).toHaveTextContent('90.0');
    expect(detailOf(/Conversation 7, turn 2: 3,200 prompt tokens/)).toBeInTheDocument();
    expect(screen.getByText(/overlap weight, 1, is derived from the costs/)).toBeInTheDocument();
    expect(await violations(container)).toEqual([]);
  });

  it('show KV-aware routing as the alternative under round-robin', async () => {
    const decisions = listed.decisions.map((d) => ({ ...d, mode: 'round_robin' as const, chosen: 0 }));
    await show({ decisions: { ...listed, decisions } }, laneChange(3, { state: { mode: 'round_robin' } }));
    await candidates();
    expect(screen.getByText(/Round-robin chose worker-0; costs were not used/)).toBeInTheDocument();
    await userEvent.click(screen.getByLabelText('What lowest cost would have done'));
    expect(screen.getByText(/Round-robin routing left/)).toHaveTextContent(
      'Over the last 3 decisions with 9,600 prompt tokens, Round-robin routing left 7,680 to be ' +
        'computed; the lowest cost would have left about 2,400 (estimated).'
    );
  });

  it('are marked as old when stopped, and when lost', async () => {
    const { client } = await show({}, laneChange(3, { state: { running: false, phase: 'stopped' } }));
    await candidates();
    expect(screen.getByText('The workload is stopped: these are the last known decisions.')).toBeInTheDocument();
    act(() => client.lose());
    expect(
      screen.getByText('The load generator is unreachable: these are the last known decisions.')
    ).toBeInTheDocument();
  });

  it.each<[string, Answers, RegExp]>([
    ['no decision', { decisions: { source: 'simulated', decisions: [] } }, /has not routed any requests yet/],
    ['no turn that has ended', { decisions: silent, active: [] }, /No turn has ended yet/],
  ])('are waited for where there is %s', async (_, answers, words) => {
    await show(answers);
    expect(await screen.findByText(words)).toBeInTheDocument();
  });

  it('report why they cannot be read', async () => {
    await show({ decisions: new Problem(503, 'The cluster cannot be asked.') });
    expect(await screen.findByText('The cluster cannot be asked.')).toBeInTheDocument();
    expect(screen.queryByRole('table', { name: 'Every worker as seen by the router' })).not.toBeInTheDocument();
  });
});

describe('inferred decisions', () => {
  const inferred = (change: Partial<DecisionList> = {}): DecisionList => ({
    source: 'inferred',
    message: 'inferred: the costs are those of our own account',
    choices: { turns: 1000, agreed: 900, ties: 40, clear: 600, clear_agreed: 594 },
    decisions: [decision({ seconds: 3, ours: 1, clear: true }), decision({ seconds: 2, ours: 0, clear: false })],
    ...change,
  });

  it('are marked, with the agreement, coverage, ties and raw agreement', async () => {
    const { container } = await show({ decisions: inferred() });
    expect(await screen.findByRole('table', { name: 'Every worker, inferred from our model' })).toBeInTheDocument();
    expect(screen.getByText('Inferred')).toBeInTheDocument();
    expect(screen.getByText('Inferred: the costs are those of our own account.')).toBeInTheDocument();
    expect(screen.getByText(/our choice matched the router’s in 99.0 % of the 600 clear turns/)).toHaveTextContent(
      '60.0 % of the last 1,000 turns are clear'
    );
    expect(
      screen.getByText(/^The router chose worker-1, and our model agrees. The margin is clear/)
    ).toBeInTheDocument();
    expect(await violations(container)).toEqual([]);
  });

  it('show our choice beside the router’s where they differ', async () => {
    await show({ decisions: inferred({ decisions: [decision({ ours: 0 })] }) });
    expect(
      await screen.findByText(/^The router chose worker-1; our model would have chosen worker-0/)
    ).toBeInTheDocument();
    expect(screen.getByRole('rowheader', { name: 'worker-0 our choice' })).toBeInTheDocument();
  });

  it('have no agreement where costs do not choose', async () => {
    const decisions = [decision({ mode: 'round_robin', pinned: true, ours: 1 })];
    await show({ decisions: inferred({ choices: undefined, decisions }) });
    expect(await screen.findByText(/It is counted only under KV-aware routing/)).toBeInTheDocument();
    expect(screen.getByText(/^Round-robin chose worker-1; costs were not used/)).toBeInTheDocument();
  });
});

describe('a target that does not report its decisions', () => {
  it('shows what it reported with the last answers', async () => {
    const { container } = await show({ decisions: silent });
    expect(await screen.findByText('This target does not report its decisions.')).toBeInTheDocument();
    const table = await screen.findByRole('table', { name: 'What the target reported with the latest answers' });
    expect(within(table).getAllByRole('row')[1]).toHaveTextContent('Conversation 7, turn 2worker-15,00090.0 %98.0 %');
    expect(await violations(container)).toEqual([]);
  });
});

describe('the prefix tree', () => {
  it('shows the conversation of a pinned decision', async () => {
    const { client } = await show();
    await candidates();
    await userEvent.click(screen.getByRole('button', { name: '9, turn 1' }));
    await waitFor(() => expect(client.reads).toHaveBeenCalledWith('/conversations/main-abc-9'));
  });

  it.each<[string, Answers, RegExp]>([
    ['that there is none', { active: [] }, /No conversation is in progress/],
    ['why it cannot be read', { detail: new Problem(404, 'Conversation not found.') }, /^Conversation not found\.$/],
  ])('reports %s', async (_, answers, words) => {
    await show(answers);
    expect(await screen.findByText(words)).toBeInTheDocument();
  });
});

describe('the loop', () => {
  it('goes step by step to the choice, and back, marked as an example', async () => {
    await show();
    const section = within(screen.getByRole('region', { name: 'The loop behind a decision' }));
    const next = section.getByRole('button', { name: 'Next' });
    expect(section.getByText('Example')).toBeInTheDocument();
    expect(section.getByRole('button', { name: 'Previous' })).toBeDisabled();
    expect(section.queryByText('1 × 25 + 5 = 30')).not.toBeInTheDocument();
    await userEvent.click(next);
    await userEvent.click(next);
    expect(section.getByText('1 × 25 + 5 = 30')).toBeInTheDocument();
    expect(section.queryByText('chosen')).not.toBeInTheDocument();
    await userEvent.click(next);
    expect(section.getByRole('rowheader', { name: 'Worker 2 chosen' })).toBeInTheDocument();
    expect(next).toBeDisabled();
    await userEvent.click(section.getByRole('button', { name: 'Previous' }));
    expect(section.queryByText('chosen')).not.toBeInTheDocument();
  });
});

it('has the recorded hit rates of both modes', async () => {
  await show();
  expect(await screen.findByRole('row', { name: /recorded at 60 to 180 conversations/ })).toHaveTextContent(
    '83.9–90.9 %91.2–96.1 %'
  );
});

it('explains the decision without the load generator', async () => {
  const client = new FakeClient();
  client.lose();
  renderWith(client, <KvRouting />, '/');
  await answered();
  expect(screen.getByText('No current data on the router.')).toBeInTheDocument();
  const modes = within(screen.getByRole('region', { name: 'Both modes side by side' }));
  expect(modes.getAllByRole('rowheader')).toHaveLength(6);
  expect(client.reads).not.toHaveBeenCalled();
});
