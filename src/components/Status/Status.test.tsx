import { act, render, screen } from '@testing-library/react';

import { clientError, member, snapshot, type LaneChange } from '../../test/fixtures';
import { OVERDUE } from '../../lib/useNow';
import { ClientVerdict, SnapshotAge, Status, Troubles } from './Status';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const pass = (ms: number) => act(() => jest.advanceTimersByTimeAsync(ms));

describe('Status', () => {
  const badge = /^Recorded on /;
  const show = (change = {}) => {
    const state = { status: 'live' as const, snapshot: snapshot({}, change), receivedAt: 0 };
    render(<Status live={{ state, lane: state.snapshot.lanes[0] }} lane="main" />);
  };

  it('shows the time of the recording in a replay', () => {
    show({ replay: { recorded_at: '2026-03-16T10:00:00Z', position: 5, length: 60 } });
    expect(screen.getByText(badge)).toHaveTextContent('Recorded on 16 Mar 2026');
  });

  it('shows no such time where it is live', () => {
    show();
    expect(screen.queryByText(badge)).not.toBeInTheDocument();
  });
});

describe('SnapshotAge', () => {
  const state = () => ({ status: 'live' as const, snapshot: snapshot(), receivedAt: Date.now() });

  it('grows until the next one arrives', async () => {
    const { rerender } = render(<SnapshotAge state={state()} />);
    expect(screen.getByText('Last snapshot 0 s ago')).toBeInTheDocument();
    await pass(2 * OVERDUE);
    expect(screen.getByText('Last snapshot 2 s ago')).toBeInTheDocument();
    rerender(<SnapshotAge state={state()} />);
    expect(screen.getByText('Last snapshot 0 s ago')).toBeInTheDocument();
  });

  it('is empty without a snapshot', () => {
    const { container } = render(<SnapshotAge state={{ status: 'loading' }} />);
    expect(container).toBeEmptyDOMElement();
  });
});

describe('ClientVerdict', () => {
  const show = (...members: Array<ReturnType<typeof member>>) => {
    const shown = snapshot({}, { members });
    return render(<ClientVerdict state={{ status: 'live', snapshot: shown, receivedAt: 0 }} />);
  };

  it('names a late member with the reason', () => {
    const reason = 'the load generator is at most 8 ms late';
    show(member('east-1'), member('west-2', { state: 'late', reason }));
    expect(screen.getByText('Load generator error negligible')).toBeInTheDocument();
    expect(screen.getByText('Member west-2 is late')).toHaveAttribute('title', `west-2: ${reason}`);
  });

  it('does not mention members in time', () => {
    const { container } = show(member('east-1'), member('west-2'));
    expect(container).toHaveTextContent(/^Load generator error negligible$/);
  });
});

describe('Troubles', () => {
  it('show for how long the load generator is unreachable', async () => {
    render(<Troubles live={{ state: { status: 'lost', since: Date.now() - 61_000, problem: 'wrong token' } }} />);
    expect(screen.getByRole('alert')).toHaveTextContent('wrong token');
    expect(screen.getByRole('timer')).toHaveTextContent('(1 min 1 s)');
    await pass(1000);
    expect(screen.getByRole('timer')).toHaveTextContent('(1 min 2 s)');
  });

  it('show which metrics cannot be judged, while it runs', () => {
    const reason = 'ITL cannot be judged: the load generator’s own error is at most 13 ms of an ITL of 20 ms (p50)';
    const live = (lane: LaneChange) => {
      const { lanes, ...rest } = snapshot(lane, { client: clientError('client_bottleneck', { reason }) });
      return { state: { status: 'live' as const, snapshot: { lanes, ...rest }, receivedAt: 0 }, lane: lanes[0] };
    };
    const { rerender } = render(<Troubles live={live({})} />);
    expect(screen.getByRole('alert')).toHaveTextContent(`The load generator’s own error is too large${reason}.`);
    rerender(<ClientVerdict state={live({}).state} />);
    expect(screen.getByText('Load generator error too large: ≤ 13 ms of 20 ms ITL')).toHaveAttribute('title', reason);
    rerender(<Troubles live={live({ state: { running: false, phase: 'stopped' } })} />);
    expect(screen.queryByRole('alert')).not.toBeInTheDocument();
  });

  it('name the problems of a serving target, where there is room', () => {
    const { lanes, ...rest } = snapshot({ target: { notices: ['3 of 4 answers came in bursts.'] } });
    const live = { state: { status: 'live' as const, snapshot: { lanes, ...rest }, receivedAt: 0 }, lane: lanes[0] };
    const { rerender } = render(<Troubles live={live} />);
    expect(screen.getByText('3 of 4 answers came in bursts.')).toBeInTheDocument();
    rerender(<Troubles live={live} withoutVerdict />);
    expect(screen.queryByText('3 of 4 answers came in bursts.')).not.toBeInTheDocument();
  });

  it('are empty while the load generator’s own error is noticeable, which has a line of its own', () => {
    const shown = snapshot({}, { client: clientError('noticeable', { of: 'difference', of_seconds: 0.0004 }) });
    const state = { status: 'live' as const, snapshot: shown, receivedAt: 0 };
    const { container, rerender } = render(<Troubles live={{ state, lane: shown.lanes[0] }} />);
    expect(container).toBeEmptyDOMElement();
    rerender(<ClientVerdict state={state} />);
    expect(container).toHaveTextContent('Load generator error noticeable: ≤ 13 ms of 0.40 ms difference in ITL');
  });

  it('are empty without a problem', () => {
    const shown = snapshot();
    const { container } = render(
      <Troubles live={{ state: { status: 'live', snapshot: shown, receivedAt: 0 }, lane: shown.lanes[0] }} />
    );
    expect(container).toBeEmptyDOMElement();
  });
});
