import type { PropsWithChildren } from 'react';
import { act, renderHook } from '@testing-library/react';

import { FakeClient } from '../test/fixtures';
import { ClientProvider } from './context';
import { Problem } from './problem';
import { type Polled, usePolled } from './usePolled';

beforeEach(() => jest.useFakeTimers());
afterEach(() => {
  jest.useRealTimers();
  setVisibility('visible');
});

function setVisibility(state: DocumentVisibilityState) {
  Object.defineProperty(document, 'visibilityState', { configurable: true, value: state });
  document.dispatchEvent(new Event('visibilitychange', { bubbles: true }));
}

const EVERY = 2000;
const pass = (ms: number) => act(() => jest.advanceTimersByTimeAsync(ms));

interface Props {
  load?: () => Promise<unknown>;
  id?: string;
  every?: number | ((known: Polled<unknown>) => number | false);
}

function poll(first: Props) {
  const client = new FakeClient();
  const wrapper = ({ children }: PropsWithChildren) => <ClientProvider client={client}>{children}</ClientProvider>;
  const usePoll = ({ load, id = 'a', every = EVERY }: Props) => usePolled(load, every, id);
  return renderHook(usePoll, { initialProps: first, wrapper });
}

describe('usePolled', () => {
  it('requests at once, and again at each interval', async () => {
    const load = jest.fn().mockResolvedValueOnce(1).mockResolvedValue(2);
    const { result } = poll({ load });
    expect(result.current.value).toBeUndefined();
    await pass(0);
    expect(result.current).toMatchObject({ value: 1, at: Date.now() });
    await pass(EVERY);
    expect(result.current).toMatchObject({ value: 2, at: Date.now() });
    expect(load).toHaveBeenCalledTimes(2);
  });

  it('does not request again while an answer is pending', async () => {
    const load = jest.fn(() => new Promise(() => undefined));
    poll({ load });
    await pass(5 * EVERY);
    expect(load).toHaveBeenCalledTimes(1);
  });

  it('keeps the last value beside the problem of a failed request, until one succeeds', async () => {
    const load = jest.fn().mockResolvedValueOnce(1).mockRejectedValueOnce(new Problem(503, 'not now'));
    const { result } = poll({ load: load.mockResolvedValue(3) });
    await pass(0);
    const then = Date.now();
    await pass(EVERY);
    expect(result.current).toMatchObject({ value: 1, at: then, problem: { status: 503, message: 'not now' } });
    await pass(EVERY);
    expect(result.current).toEqual({ value: 3, at: Date.now() });
  });

  it('reports a first failure, even of a load that throws', async () => {
    const { result } = poll({
      load: () => {
        throw new Error('broken');
      },
    });
    await pass(0);
    expect(result.current).toEqual({ problem: expect.objectContaining({ message: 'broken' }) });
  });

  it('keeps the identity of what did not change', async () => {
    let asked = 0;
    const load = () => Promise.resolve({ rows: [{ id: 1 }], at: ++asked });
    const { result } = poll({ load });
    await pass(0);
    const before = result.current.value as { rows: unknown };
    await pass(EVERY);
    expect(result.current.value).not.toBe(before);
    expect((result.current.value as { rows: unknown }).rows).toBe(before.rows);
  });

  it('drops the value when the key changes, and ignores a late answer for the old key', async () => {
    let late!: (value: string) => void;
    const first = jest.fn(() => new Promise<string>((resolve) => (late = resolve)));
    const { result, rerender } = poll({ load: first });
    await pass(0);
    rerender({ load: () => Promise.resolve('of b'), id: 'b' });
    expect(result.current.value).toBeUndefined();
    late('of a');
    await pass(0);
    expect(result.current.value).toBe('of b');
  });

  it('requests with the newest load without starting over', async () => {
    const older = jest.fn().mockResolvedValue(1);
    const newer = jest.fn().mockResolvedValue(2);
    const { result, rerender } = poll({ load: older });
    await pass(0);
    rerender({ load: newer });
    await pass(0);
    expect(newer).not.toHaveBeenCalled();
    await pass(EVERY);
    expect(result.current.value).toBe(2);
  });

  it('pauses without a load, and keeps the last value', async () => {
    const load = jest.fn().mockResolvedValue(1);
    const { result, rerender } = poll({ load });
    await pass(0);
    rerender({});
    await pass(3 * EVERY);
    expect(load).toHaveBeenCalledTimes(1);
    expect(result.current.value).toBe(1);
  });

  it('requests at the interval that the value determines, until it is false', async () => {
    const load = jest.fn().mockRejectedValueOnce(new Problem(503, 'not now')).mockResolvedValue(1);
    poll({ load, every: ({ problem }) => problem !== undefined && 500 });
    await pass(499);
    expect(load).toHaveBeenCalledTimes(1);
    await pass(1);
    expect(load).toHaveBeenCalledTimes(2);
    act(() => setVisibility('hidden'));
    act(() => setVisibility('visible'));
    await pass(10 * EVERY);
    expect(load).toHaveBeenCalledTimes(2);
  });

  it('pauses while the page is hidden, and loads at once when it is visible again', async () => {
    const load = jest.fn().mockResolvedValue(1);
    poll({ load });
    await pass(0);
    act(() => setVisibility('hidden'));
    await pass(10 * EVERY);
    expect(load).toHaveBeenCalledTimes(1);
    act(() => setVisibility('visible'));
    await pass(0);
    expect(load).toHaveBeenCalledTimes(2);
  });

  it('ends with its component', async () => {
    const load = jest.fn().mockResolvedValue(1);
    const { unmount } = poll({ load });
    await pass(0);
    unmount();
    await pass(3 * EVERY);
    expect(load).toHaveBeenCalledTimes(1);
  });
});
