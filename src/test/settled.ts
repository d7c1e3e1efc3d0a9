import { act, waitFor } from '@testing-library/react';

import type { FakeClient } from './fixtures';

const later = setTimeout; // also where a test has taken the clock

/**
 * Waits until a client was asked for each path that begins so, which may be by a
 * timer, and until the answers have had their effects.
 */
export async function settled(client: FakeClient, ...paths: string[]) {
  await waitFor(() => {
    const asked = client.reads.mock.calls.map(([path]) => path);
    expect(paths.filter((begin) => !asked.some((path) => path.startsWith(begin)))).toEqual([]);
  });
  await answered();
}

/** Waits until answers that were given at once have had their effects, however many promises lie between. */
export async function answered() {
  await act(() => new Promise((resolve) => later(resolve)));
}
