import React from 'react';
import { act, render, screen } from '@testing-library/react';

import { snapshot } from '../../test/fixtures';
import { OVERDUE } from '../../lib/useNow';
import { SnapshotAge, Troubles } from './Status';

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

describe('Troubles', () => {
  it('tell for how long the load generator is lost', async () => {
    render(<Troubles live={{ state: { status: 'lost', since: Date.now() - 61_000, problem: 'wrong token' } }} />);
    expect(screen.getByRole('alert')).toHaveTextContent('wrong token');
    expect(screen.getByRole('timer')).toHaveTextContent('(1 min 1 s)');
    await pass(1000);
    expect(screen.getByRole('timer')).toHaveTextContent('(1 min 2 s)');
  });

  it('are none while all is well', () => {
    const shown = snapshot();
    const { container } = render(
      <Troubles live={{ state: { status: 'live', snapshot: shown, receivedAt: 0 }, lane: shown.lanes[0] }} />
    );
    expect(container).toBeEmptyDOMElement();
  });
});
