import { act, screen } from '@testing-library/react';

import { admin, FakeClient, viewer } from '../test/fixtures';
import { renderWith } from '../test/render';
import { ME_EVERY, ME_RETRY, useLive, useMe } from './context';

function Who() {
  return <p>{useMe()?.login ?? 'unknown'}</p>;
}

function Where({ lane }: { lane: string }) {
  const live = useLive(lane);
  return <p>{`${live.state.status} ${live.lane?.name ?? 'no lane'}`}</p>;
}

describe('useLive', () => {
  it('returns the lane while it is live, and unsubscribes when it unmounts', () => {
    const client = new FakeClient();
    const { rerender, unmount } = renderWith(client, <Where lane="main" />);
    expect(screen.getByText('loading no lane')).toBeInTheDocument();
    act(() => client.show());
    expect(screen.getByText('live main')).toBeInTheDocument();
    rerender(<Where lane="twin" />);
    expect(screen.getByText('live no lane')).toBeInTheDocument();
    act(() => client.lose());
    expect(screen.getByText('lost no lane')).toBeInTheDocument();
    unmount();
    expect(client.states.observed).toBe(false);
  });
});

describe('useMe', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('is unknown until the first answer, and is requested again', async () => {
    const client = new FakeClient();
    client.who.mockRejectedValueOnce(new Error('x')).mockResolvedValueOnce(viewer).mockResolvedValue(admin);
    const { unmount } = renderWith(client, <Who />);
    await act(() => jest.advanceTimersByTimeAsync(0));
    expect(screen.getByText('unknown')).toBeInTheDocument();
    await act(() => jest.advanceTimersByTimeAsync(ME_RETRY));
    expect(screen.getByText('visitor')).toBeInTheDocument();
    await act(() => jest.advanceTimersByTimeAsync(ME_EVERY));
    expect(screen.getByText('admin')).toBeInTheDocument();
    unmount();
    await act(() => jest.advanceTimersByTimeAsync(10 * ME_EVERY));
    expect(client.who).toHaveBeenCalledTimes(3);
  });
});
