import React from 'react';
import { act, render, screen } from '@testing-library/react';

import { member, snapshot, type LaneChange } from '../../test/fixtures';
import { OVERDUE } from '../../lib/useNow';
import { ClientVerdict, SnapshotAge, Troubles } from './Status';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const pass = (ms: number) => act(() => jest.advanceTimersByTimeAsync(ms));

describe('SnapshotAge', () => {
  const state = () => ({ status: 'live' as const, snapshot: snapshot(), receivedAt: Date.now() });

  it('grows until the next one comes', async () => {
    const { rerender } = render(<SnapshotAge state={state()} />);
    expect(screen.getByText('Last snapshot 0 s ago')).toBeInTheDocument();
    await pass(2 * OVERDUE);
    expect(screen.getByText('Last snapshot 2 s ago')).toBeInTheDocument();
    rerender(<SnapshotAge state={state()} />);
    expect(screen.getByText('Last snapshot 0 s ago')).toBeInTheDocument();
  });

  it('says nothing where there is none', () => {
    const { container } = render(<SnapshotAge state={{ status: 'loading' }} />);
    expect(container).toBeEmptyDOMElement();
  });
});

describe('ClientVerdict', () => {
  const show = (...members: Array<ReturnType<typeof member>>) => {
    const shown = snapshot({}, { members });
    return render(<ClientVerdict state={{ status: 'live', snapshot: shown, receivedAt: 0 }} />);
  };

  it('names a member that is late, and says why', () => {
    const reason = 'the load generator itself is 8 ms late';
    show(member('east-1'), member('west-2', { state: 'late', reason }));
    expect(screen.getByText('Load generator keeps up')).toBeInTheDocument();
    expect(screen.getByText('Member west-2 is late')).toHaveAttribute('title', `west-2: ${reason}`);
  });

  it('says nothing of members that are in time', () => {
    const { container } = show(member('east-1'), member('west-2'));
    expect(container).toHaveTextContent(/^Load generator keeps up$/);
  });
});

describe('Troubles', () => {
  it('tell for how long the load generator is unreachable', async () => {
    render(<Troubles live={{ state: { status: 'lost', since: Date.now() - 61_000, problem: 'wrong token' } }} />);
    expect(screen.getByRole('alert')).toHaveTextContent('wrong token');
    expect(screen.getByRole('timer')).toHaveTextContent('(1 min 1 s)');
    await pass(1000);
    expect(screen.getByRole('timer')).toHaveTextContent('(1 min 2 s)');
  });

  it('tell that the load generator is the bottleneck, and why, while it runs', () => {
    const reason = 'the load generator itself is 8 ms late (p95 of the last 10 s)';
    const client = { verdict: 'client_bottleneck' as const, reason, cpu_ratio: 1, lag_seconds: 0.008 };
    const live = (lane: LaneChange) => {
      const { lanes, ...rest } = snapshot(lane, { client });
      return { state: { status: 'live' as const, snapshot: { lanes, ...rest }, receivedAt: 0 }, lane: lanes[0] };
    };
    const { rerender } = render(<Troubles live={live({})} />);
    expect(screen.getByRole('alert')).toHaveTextContent(
      'The load generator is the bottleneckThe load generator itself is 8 ms late (p95 of the last 10 s). Until it keeps up, nothing is called better or worse.'
    );
    rerender(<ClientVerdict state={live({}).state} />);
    expect(screen.getByText('Load generator is the bottleneck')).toHaveAttribute('title', reason);
    rerender(<Troubles live={live({ state: { running: false, phase: 'stopped' } })} />);
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });

  it('name what is odd about a target that serves, where there is room', () => {
    const { lanes, ...rest } = snapshot({ target: { notices: ['3 of 4 answers came in bursts.'] } });
    const live = { state: { status: 'live' as const, snapshot: { lanes, ...rest }, receivedAt: 0 }, lane: lanes[0] };
    const { rerender } = render(<Troubles live={live} />);
    expect(screen.getByText('3 of 4 answers came in bursts.')).toBeInTheDocument();
    rerender(<Troubles live={live} withoutVerdict />);
    expect(screen.queryByText('3 of 4 answers came in bursts.')).not.toBeInTheDocument();
  });

  it('are none while all is well', () => {
    const shown = snapshot();
    const { container } = render(
      <Troubles live={{ state: { status: 'live', snapshot: shown, receivedAt: 0 }, lane: shown.lanes[0] }} />
    );
    expect(container).toBeEmptyDOMElement();
  });
});
