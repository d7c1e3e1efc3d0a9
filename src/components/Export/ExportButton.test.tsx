import { render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { Problem } from '../../client';
import { fileName } from '../../lib/save';
import { stubSizes } from '../../test/sizes';
import { ExportButton } from '.';

beforeEach(() => stubSizes());
afterEach(() => jest.restoreAllMocks());

const pick = async (item: string) => {
  await userEvent.click(screen.getByRole('button', { name: 'Export the figures' }));
  await userEvent.click(await screen.findByText(item));
};

it('builds a file on request, and not before', async () => {
  const blobs: Blob[] = [];
  const names: string[] = [];
  URL.createObjectURL = jest.fn((blob: Blob) => (blobs.push(blob), 'blob:1'));
  URL.revokeObjectURL = jest.fn();
  jest.spyOn(HTMLAnchorElement.prototype, 'click').mockImplementation(function (this: HTMLAnchorElement) {
    names.push(this.download);
  });
  const text = jest.fn(() => 'a,b\r\n');
  render(<ExportButton label="Export the figures" files={[{ label: 'As CSV', of: 'figures', format: 'csv', text }]} />);
  expect(text).not.toHaveBeenCalled();
  await pick('As CSV');
  await waitFor(() => expect(names).toEqual([expect.stringMatching(/^kv-booth-figures-\d{8}T\d{6}Z\.csv$/)]));
  expect(blobs[0].type).toBe('text/csv;charset=utf-8');
  expect(blobs[0].size).toBe(5);
});

it('reports a failure', async () => {
  const text = () => Promise.reject(new Problem(0, 'no answer'));
  render(<ExportButton label="Export the figures" files={[{ label: 'As JSON', of: 'x', format: 'json', text }]} />);
  await pick('As JSON');
  expect(await screen.findByRole('alert')).toHaveTextContent('Export failed: no answer');
  expect(screen.getByRole('button', { name: 'Export the figures' })).toBeEnabled();
});

it('names a file after the second of its export', () => {
  expect(fileName('history', 'json', new Date('2026-11-20T10:00:00.123Z'))).toBe(
    'kv-booth-history-20261120T100000Z.json'
  );
});
