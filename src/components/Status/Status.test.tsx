import { act, render, screen } from '@testing-library/react';

import { clientError, live, member, snapshot } from '../../test/fixtures';
import { OVERDUE } from '../../lib/useNow';
import { ClientVerdict, SnapshotAge, Status, Troubles } from './Status';

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

const pass = (ms: number) => act(() => jest.advanceTimersByTimeAsync(ms));

describe('Status', () => {
  it('shows the time of the recording in a replay, and none where it is live', () => {
    const replay = { recorded_at: '2026-03-16T10:00:00Z', position: 5, length: 60 };
    const { rerender } = render(<Status live={live(snapshot({}, { replay }))} lane="main" />);
    expect(screen.getByText(/^Recorded on /)).toHaveTextContent('Recorded on 16 Mar 2026');
    rerender(<Status live={live()} lane="main" />);
    expect(screen.queryByText(/^Recorded on /)).not.toBeInTheDocument();
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

it('names a late member with the reason beside the verdict', () => {
  const reason = 'the load generator is at most 8 ms late';
  const members = [member('east-1'), member('west-2', { state: 'late', reason })];
  render(<ClientVerdict state={live(snapshot({}, { members })).state} />);
  expect(screen.getByText('Load generator error negligible')).toBeInTheDocument();
  expect(screen.getByText('Member west-2 is late')).toHaveAttribute('title', `west-2: ${reason}`);
});

describe('Troubles', () => {
  it('show for how long the load generator is unreachable', async () => {
    render(<Troubles live={{ state: { status: 'lost', since: Date.now() - 61_000, problem: 'wrong token' } }} />);
    expect(screen.getByRole('alert')).toHaveTextContent('wrong token');
    expect(screen.getByRole('timer')).toHaveTextContent('(1 min 1 s)');
    await pass(1000);
    expect(screen.getByRole('timer')).toHaveTextContent('(1 min 2 s)');
  });

  it('show what is wrong with the database', () => {
    render(<Troubles live={live(snapshot({}, { store_problem: 'the database is damaged: unreadable turns (1)' }))} />);
    expect(screen.getByText('About the database')).toBeInTheDocument();
    expect(screen.getByText('The database is damaged: unreadable turns (1).')).toBeInTheDocument();
  });

  it.each([
    ['of 20.0 ms ITL', {}],
    ['of 1.0 ms distance of ITL from its SLO', { of: 'threshold', of_seconds: 0.001 } as const],
  ])('leave a large error to its own line: %s', (basis, change) => {
    const reason = 'ITL cannot be judged';
    const spoiled = live(snapshot({}, { client: clientError('client_bottleneck', { reason, ...change }) }));
    const { container, rerender } = render(<Troubles live={spoiled} />);
    expect(container).toBeEmptyDOMElement();
    rerender(<ClientVerdict state={spoiled.state} />);
    expect(screen.getByText(`Load generator error too large: ≤ 13.0 ms ${basis}`)).toHaveAttribute('title', reason);
  });

  it('are gray about the load generator’s own error unless an outcome is withheld for it', () => {
    const classOf = (change: Parameters<typeof clientError>[1]) => {
      const client = clientError('client_bottleneck', change);
      const { container, unmount } = render(<ClientVerdict state={live(snapshot({}, { client })).state} />);
      const name = container.querySelector('span')?.className;
      unmount();
      return name;
    };
    const gray = classOf({ level: 'ok' });
    expect(classOf({ of: 'p50' })).toBe(gray);
    expect(classOf({ of: 'threshold' })).not.toBe(gray);
    expect(classOf({ of: 'difference' })).not.toBe(gray);
  });

  it('name the problems of a serving target, where there is room', () => {
    const noticed = live(snapshot({ target: { notices: ['3 of 4 answers came in bursts.'] } }));
    const { rerender } = render(<Troubles live={noticed} />);
    expect(screen.getByText('3 of 4 answers came in bursts.')).toBeInTheDocument();
    rerender(<Troubles live={noticed} withoutNotices />);
    expect(screen.queryByText('3 of 4 answers came in bursts.')).not.toBeInTheDocument();
  });

  it('are empty while the load generator’s own error is noticeable, which has a line of its own', () => {
    const client = clientError('noticeable', { of: 'difference', of_seconds: 0.0004 });
    const noticeable = live(snapshot({}, { client }));
    const { container, rerender } = render(<Troubles live={noticeable} />);
    expect(container).toBeEmptyDOMElement();
    rerender(<ClientVerdict state={noticeable.state} />);
    expect(container).toHaveTextContent('Load generator error noticeable: ≤ 13.0 ms of 0.4 ms difference in ITL');
  });

  it('are empty without a problem', () => {
    const { container } = render(<Troubles live={live()} />);
    expect(container).toBeEmptyDOMElement();
  });
});
