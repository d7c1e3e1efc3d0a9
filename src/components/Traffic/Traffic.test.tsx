import { act, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { Problem, type State, type TrafficPreview } from '../../client';
import { violations } from '../../test/axe';
import { FakeClient, state } from '../../test/fixtures';
import { renderWith } from '../../test/render';
import { stubSizes } from '../../test/sizes';
import { SETTLED, Traffic } from './Traffic';

const counts = { mean: 1010, p50: 1000, p95: 1100, max: 1200, bins: [{ up_to: 1024, n: 60 }] };

const preview: TrafficPreview = {
  concurrency: '12/s',
  shape: { preset: 'prefix' },
  seconds: 600,
  cut: false,
  first_token_seconds: 0.5,
  per_token_seconds: 0.02,
  requests: 7200,
  conversations: 7200,
  requests_over_time: [3600, 3600],
  turns: { ...counts, mean: 1, max: 1 },
  input_tokens: counts,
  output_tokens: counts,
  block_tokens: 16,
  hit_ratio: 0.856,
  distinct_blocks: 40_000,
  reused_blocks: 37_200,
  caches: {
    workers: 8,
    worker_blocks: 4650,
    hit_ratio: 0.641,
    policies: [{ policy: 'best_placement', title: 'Best placement', in_force: false, figures: { hit_ratio: 0.58 } }],
  },
};

beforeEach(() => stubSizes()); // which a combobox needs
afterEach(() => jest.restoreAllMocks());

function show(answer: () => Promise<TrafficPreview> = () => Promise.resolve(preview), change: Partial<State> = {}) {
  const client = new FakeClient();
  client.writes.mockImplementation(answer);
  const onApply = jest.fn(() => Promise.resolve(true));
  const { container } = renderWith(
    client,
    <Traffic
      lane="main"
      level="12/s"
      state={state({ phase: 'stopped', concurrency: { target: '12/s', actual: 0 }, ...change })}
      disabled={false}
      busy={false}
      onApply={onApply}
    />
  );
  return { client, onApply, container };
}

async function choose(name: RegExp) {
  await userEvent.click(screen.getByRole('combobox', { name: 'Shape' }));
  await userEvent.click(await screen.findByRole('option', { name }));
}

const field = (name: string) => screen.getByRole('textbox', { name });

it('shows what a shape would be before it is applied', async () => {
  const { client, onApply, container } = show();
  expect(client.writes).not.toHaveBeenCalled(); // the recorded workload has no plan
  await choose(/^Prefix/);
  await userEvent.type(field('Groups'), '600');
  await waitFor(() =>
    expect(client.writes).toHaveBeenLastCalledWith('POST', '/traffic/preview?lane=main', {
      concurrency: '12/s',
      shape: { preset: 'prefix', groups: 600 },
    })
  );
  const facts = within(await screen.findByRole('region', { name: 'Preview of the traffic' }));
  expect(facts.getByText('7,200 in 7,200 conversations')).toBeInTheDocument();
  expect(facts.getByText('37,200 blocks of 16 tokens')).toBeInTheDocument();
  expect(facts.getByText('58.0 %')).toBeInTheDocument();
  expect(await violations(container)).toEqual([]);
  await userEvent.click(screen.getByRole('button', { name: 'Apply' }));
  expect(onApply).toHaveBeenCalledWith({ shape: { preset: 'prefix', groups: 600 } });
});

it('has arrivals and a ramp at a rate, by keyboard alone', async () => {
  const { client, onApply } = show();
  for (let i = 0; i < 6; i++) {
    await userEvent.tab(); // past the shape and the settings of its texts
  }
  expect(screen.getByRole('radio', { name: 'Poisson' })).toHaveFocus();
  await userEvent.keyboard('{ArrowRight}');
  await userEvent.clear(field('Burstiness'));
  await userEvent.keyboard('0.5');
  field('Ramp from').focus();
  await userEvent.keyboard('2');
  expect(screen.getByText('Needed for a ramp')).toBeInTheDocument();
  await userEvent.tab();
  await userEvent.keyboard('600{Enter}');
  const change = {
    burstiness: 0.5,
    arrivals: 'gamma',
    concurrency: '12/s',
    ramp: { from: '2/s', seconds: 600 },
  };
  expect(onApply).toHaveBeenCalledWith(change);
  expect(client.writes).not.toHaveBeenCalled();
});

it('previews the trace that runs', async () => {
  const { client } = show(undefined, { shape: { ...state().shape, traffic: 'trace t.jsonl' } });
  expect(screen.getByText('trace t.jsonl')).toBeInTheDocument();
  expect(screen.queryByRole('combobox', { name: 'Shape' })).not.toBeInTheDocument();
  expect(screen.queryByRole('radio')).not.toBeInTheDocument();
  await screen.findByRole('region', { name: 'Preview of the traffic' });
  expect(client.writes).toHaveBeenCalledWith('POST', '/traffic/preview?lane=main', { concurrency: '12/s' });
});

it('shows the refusal of a preview at its field', async () => {
  const message = 'shape.prefix_tokens: 5000 is not allowed: at most 4096 tokens together';
  show(() => Promise.reject(new Problem(422, message, 'shape.prefix_tokens')));
  await choose(/^Prefix/);
  await userEvent.type(field('Shared prefix'), '5000');
  expect(await screen.findByRole('alert')).toHaveTextContent(message); // the field's own
  expect(screen.queryByText('No preview')).not.toBeInTheDocument();
});

it('refuses a number where it is entered, and asks for no preview of it', async () => {
  const { client } = show();
  await choose(/^Agent/);
  await userEvent.type(field('Turns'), '1001');
  expect(screen.getByText('A whole number from 0 to 1000')).toBeInTheDocument();
  expect(screen.getByRole('button', { name: 'Apply' })).toBeDisabled();
  expect(client.writes).not.toHaveBeenCalledWith('POST', expect.anything(), {
    concurrency: '12/s',
    shape: { preset: 'agent', turns: 1001 },
  });
});

it('says why there is no preview', async () => {
  const message = 'lane: "main" does not exist';
  show(() => Promise.reject(new Problem(404, message)));
  expect(screen.getByText(/^Recorded conversations depend/)).toBeInTheDocument();
  await choose(/^Batch/);
  expect(await screen.findByText(message)).toBeInTheDocument();
});

it('asks for none while the workload runs', async () => {
  const { client } = show(undefined, { phase: 'running' });
  await choose(/^Batch/);
  expect(screen.getByText(/^No preview while the workload runs/)).toBeInTheDocument();
  await act(() => new Promise((resolve) => setTimeout(resolve, SETTLED)));
  expect(client.writes).not.toHaveBeenCalled();
});
