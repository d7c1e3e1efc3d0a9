import { act, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { Problem, type Baseline } from '../../client';
import { violations } from '../../test/axe';
import { emptyRow, FakeClient, viewer } from '../../test/fixtures';
import { renderWith, texts } from '../../test/render';
import { settled } from '../../test/settled';
import { Baselines } from './Baselines';
import { lineOf, nameOf, placeOf } from './file';
import { ImportButton } from './ImportButton';

const mine: Baseline = {
  name: 'mine',
  title: 'My run',
  kind: 'imported',
  deployment: { gpu: 'L40S' },
  rows: [emptyRow(60, 'kv', { ttft: { p95: 0.45 } }), emptyRow(60, 'round_robin', { ttft: { p95: 0.66 } })],
};
const builtIn: Baseline = { ...mine, name: 'h200', title: '3× H200', kind: 'recorded' };

async function show(baselines = [builtIn]) {
  const client = new FakeClient();
  client.show();
  client.reads.mockImplementation(() => Promise.resolve({ baselines }));
  const result = renderWith(client, <Baselines lane="main" />);
  await settled(client, '/baselines');
  return result;
}

const content = () => screen.getByRole('textbox', { name: /^Content/ });
const name = () => screen.getByRole('textbox', { name: /^Name/ });
const button = (label: string) => screen.getByRole('button', { name: label });
const enter = async (text: string) => {
  await userEvent.click(content());
  await userEvent.paste(text);
};
const CSV = 'concurrency,mode\n60,kv\n60,round_robin\n';

describe('the import of a baseline', () => {
  it('requires another preview after each change', async () => {
    const { client } = await show();
    await enter(CSV);
    client.uploads.mockResolvedValue(mine);
    await userEvent.click(button('Check'));
    expect(button('Import')).toBeEnabled();
    await userEvent.type(name(), 'x');
    expect(button('Import')).toBeDisabled();
    expect(screen.queryByRole('region', { name: 'Preview' })).not.toBeInTheDocument();
  });

  it('reports a name that belongs to a built-in baseline', async () => {
    const { client } = await show();
    await enter('{"name":"h200","rows":[]}');
    client.uploads.mockRejectedValue(new Problem(409, '"h200" is the name of a baseline that cannot be replaced'));
    await userEvent.click(button('Check'));
    expect(client.uploads).toHaveBeenLastCalledWith('/baselines?dry_run=true', expect.anything(), 'application/json');
    expect(screen.getByText('Import rejected')).toBeInTheDocument();
    expect(screen.getByText(/cannot be replaced/)).toBeInTheDocument();
  });

  it('requires the mode where the file is another program’s, and shows its ignored parts', async () => {
    const { client, container } = await show();
    const results = '{"aiperf_version":"0.13.0"}';
    await enter(results);
    await userEvent.type(name(), 'may');
    expect(screen.queryByRole('radiogroup', { name: 'Routing mode' })).not.toBeInTheDocument();
    client.uploads.mockRejectedValueOnce(
      new Problem(422, 'mode is required: one of round_robin, kv: AIPerf does not record it', 'mode')
    );
    await userEvent.click(button('Check'));
    expect(screen.getByText('How were the requests routed?')).toBeInTheDocument();
    expect(screen.queryByText('Import rejected')).not.toBeInTheDocument();
    expect(await violations(container)).toEqual([]);

    await userEvent.click(screen.getByRole('radio', { name: 'KV-aware' }));
    expect(screen.queryByText('How were the requests routed?')).not.toBeInTheDocument();
    client.uploads.mockResolvedValue({
      ...mine,
      name: 'may',
      notes: 'Imported from AIPerf 0.13.0.\nITL is not taken.',
    });
    await userEvent.click(button('Check'));
    expect(client.uploads).toHaveBeenLastCalledWith(
      '/baselines?name=may&mode=kv&speculation=not_recorded&dry_run=true',
      results,
      'application/json'
    );
    const notes = within(screen.getByRole('list', { name: 'Notes' }));
    expect(texts(notes.getAllByRole('listitem'))).toEqual(['Imported from AIPerf 0.13.0.', 'ITL is not taken.']);
    await enter(' '); // another text, without a preview
    expect(screen.queryByRole('radiogroup', { name: 'Routing mode' })).not.toBeInTheDocument();
  });

  it('adds rows to an earlier import on request', async () => {
    const { client } = await show([builtIn, mine]);
    await enter(CSV);
    expect(screen.queryByRole('checkbox')).not.toBeInTheDocument();
    await userEvent.type(name(), 'mine');
    await userEvent.click(screen.getByRole('checkbox', { name: /^Add its rows to “My run”/ }));
    client.uploads.mockResolvedValue(mine);
    await userEvent.click(button('Check'));
    expect(client.uploads).toHaveBeenLastCalledWith('/baselines?name=mine&merge=true&dry_run=true', CSV, 'text/csv');
    expect(screen.queryByText(/This replaces/)).not.toBeInTheDocument();
    expect(button('Import')).toBeEnabled();
    await userEvent.click(screen.getByRole('checkbox'));
    expect(button('Import')).toBeDisabled();
  });

  it('warns before it replaces an earlier import', async () => {
    const { client } = await show([builtIn, mine]);
    await enter(CSV);
    client.uploads.mockResolvedValue(mine);
    await userEvent.click(button('Check'));
    expect(screen.getByText('This replaces the imported baseline “My run”')).toBeInTheDocument();
  });

  it('takes a file, and its name', async () => {
    await show();
    const file = new File([CSV], 'Our run (May).csv', { type: 'text/csv' });
    file.text = () => Promise.resolve(CSV); // jsdom has none
    await userEvent.upload(screen.getByLabelText('File to import'), file);
    expect(content()).toHaveValue(CSV);
    expect(name()).toHaveValue('Our run -May-');

    await userEvent.clear(name());
    for (const [text, as] of [
      ['{"name":"its own","rows":[]}', ''],
      ['{"aiperf_version":"0.13.0"}', 'profile_export_aiperf'],
    ]) {
      const json = new File([text], 'profile_export_aiperf.json', { type: 'application/json' });
      json.text = () => Promise.resolve(text);
      await userEvent.upload(screen.getByLabelText('File to import'), json);
      expect(name()).toHaveValue(as);
    }
  });

  it('keeps the file that was chosen last, whatever the order of reading', async () => {
    await show();
    let finish!: (text: string) => void;
    const slow = new File(['slow'], 'slow.csv', { type: 'text/csv' });
    slow.text = () => new Promise((resolve) => (finish = resolve));
    const fast = new File([CSV], 'fast.csv', { type: 'text/csv' });
    fast.text = () => Promise.resolve(CSV);
    await userEvent.upload(screen.getByLabelText('File to import'), slow);
    await userEvent.upload(screen.getByLabelText('File to import'), fast);
    await act(async () => finish('slow'));
    expect(content()).toHaveValue(CSV);
    expect(name()).toHaveValue('fast');
  });
});

describe('imported baselines', () => {
  it('are deleted after a confirmation', async () => {
    const { client } = await show([builtIn, mine]);
    expect(screen.queryByRole('button', { name: 'Delete 3× H200' })).not.toBeInTheDocument();
    await userEvent.click(button('Delete My run'));
    await userEvent.click(button('Keep it (Esc)'));
    expect(client.writes).not.toHaveBeenCalled();
    await userEvent.click(button('Delete My run'));
    await userEvent.click(button('Delete (Enter)'));
    expect(client.writes).toHaveBeenCalledWith('DELETE', '/baselines/mine', undefined);
  });

  it('stay where the load generator refuses', async () => {
    const { client } = await show([mine]);
    client.writes.mockRejectedValue(new Problem(409, '"mine" is the default baseline; choose another default first'));
    await userEvent.click(button('Delete My run'));
    await userEvent.click(button('Delete (Enter)'));
    expect(await screen.findByText(/choose another default first/)).toBeInTheDocument();
  });
});

describe('the button', () => {
  it('is shown to users who may configure', async () => {
    const client = new FakeClient();
    client.reads.mockResolvedValue({ baselines: [mine] });
    client.show();
    const { unmount } = renderWith(client, <ImportButton lane="main" />);
    await userEvent.click(await screen.findByRole('button', { name: 'Import…' }));
    await userEvent.click(await screen.findByRole('button', { name: 'Delete My run' }));
    await userEvent.keyboard('{Escape}'); // closes the question, not the form below it
    expect(screen.queryByText('It is deleted for all users.')).not.toBeInTheDocument();
    expect(button('Delete My run')).toBeInTheDocument();
    unmount();
    client.who.mockResolvedValue(viewer);
    renderWith(client, <ImportButton lane="main" />);
    await settled(client, '/baselines');
    expect(screen.queryByRole('button', { name: 'Import…' })).not.toBeInTheDocument();
  });
});

it('names, lines and positions', () => {
  expect(nameOf('../a b.json')).toBe('a b');
  expect(lineOf('line 12, rows[3].mode')).toBe(12);
  expect(lineOf('name')).toBeUndefined();
  expect(placeOf('a\nbc\nd', 2)).toEqual([2, 4]);
  expect(placeOf('a\nbc', 2)).toEqual([2, 4]);
});
