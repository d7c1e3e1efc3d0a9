import { act, waitFor } from '@testing-library/react';

import type { FakeClient } from './fixtures';

const later = setTimeout; // the real timer, also under fake timers

/**
 * Waits until a client was asked for each path with these prefixes, also by a timer, and until the answers have taken
 * effect.
 */
export async function settled(client: FakeClient, ...paths: string[]) {
  await waitFor(() => {
    const asked = client.reads.mock.calls.map(([path]) => path);
    expect(paths.filter((begin) => !asked.some((path) => path.startsWith(begin)))).toEqual([]);
  });
  await answered();
}

/** Waits until answers that are already given have taken effect, however many promises lie between. */
export async function answered() {
  await act(() => new Promise((resolve) => later(resolve)));
}
