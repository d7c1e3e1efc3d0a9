import { act, renderHook } from '@testing-library/react';

import { Problem } from '../../client';
import { useAction } from './useAction';
import { SETTLE, useConcurrency } from './useConcurrency';

/** Calls whose answers the test resolves. */
function calls() {
  const open: Array<{ resolve(): void; reject(why: Problem): void }> = [];
  const call = () => new Promise<void>((resolve, reject) => open.push({ resolve, reject }));
  return { open, call };
}

const refused = new Problem(409, 'The workload is draining.');

describe('an answer that comes after a newer call', () => {
  it.each<[string, boolean, boolean]>([
    ['its success, while the newer call is under way', true, false],
    ['its failure, while the newer call is under way', false, false],
    ['its success, after the newer call has failed', true, true],
    ['its failure, after the newer call has failed', false, true],
  ])('changes nothing: %s', async (_, succeeds, newerFailed) => {
    const { open, call } = calls();
    const { result } = renderHook(() => useAction(undefined));
    let first!: Promise<boolean>;
    await act(async () => void (first = result.current.run('first', call)));
    await act(async () => void result.current.run('second', call));
    if (newerFailed) {
      await act(async () => open[1].reject(refused));
    }
    const before = { busy: result.current.busy, failure: result.current.failure };
    expect(before).toEqual(
      newerFailed ? { failure: { name: 'second', problem: refused } } : { busy: 'second', failure: undefined }
    );
    await act(async () => (succeeds ? open[0].resolve() : open[0].reject(new Problem(502, 'connection refused'))));
    expect({ busy: result.current.busy, failure: result.current.failure }).toEqual(before);
    expect(await first).toBe(succeeds);
  });

  it('does not drop the concurrency that was chosen since', async () => {
    jest.useFakeTimers();
    const answers: Array<(accepted: boolean) => void> = [];
    const { result } = renderHook(() => useConcurrency(10, () => new Promise((resolve) => answers.push(resolve))));
    for (const value of [20, 30, 20]) {
      act(() => result.current.change(value));
      await act(async () => void result.current.flush());
    }
    await act(async () => answers[0](false));
    expect(result.current.value).toBe(20);
    await act(async () => answers[2](true));
    await act(async () => void jest.advanceTimersByTime(SETTLE));
    expect(result.current.value).toBe(10);
    jest.useRealTimers();
  });
});
