/** @jest-environment node */
import type { LaneSnapshot } from '../client';
import { laneSnapshot } from '../test/fixtures';
import { describeLane } from './status';
import { targetKind, targetTrouble } from './target';

type TargetKind = LaneSnapshot['target']['kind'];

describe('targetKind', () => {
  const lane = (kind: TargetKind, engine?: string) => laneSnapshot({ target: { kind, deployment: { engine } } });

  it.each([
    ['the simulated cluster', lane('simulated'), undefined, 'simulated'],
    ['mock workers', lane('mocked'), { nvext: true }, 'mock'],
    ['a Dynamo', lane('real'), { nvext: true }, 'dynamo'],
    ['a Dynamo, whatever its engine is called', lane('unknown', 'simulated trtllm'), { nvext: true }, 'dynamo'],
    ['another server', lane('unknown'), { nvext: false }, 'plain'],
    ['nothing before the status is known', lane('real'), undefined, 'unknown'],
    ['nothing without a lane', undefined, { nvext: true }, 'unknown'],
  ])('knows %s', (_, of, extensions, kind) => {
    expect(targetKind(of, extensions)).toBe(kind);
  });
});

describe('targetTrouble', () => {
  const { window } = laneSnapshot();
  const failing = { ...window, error_ratio: 1 };
  const lost = { reachable: false, problem: 'no connection to x' };
  it.each<[string, Parameters<typeof laneSnapshot>[0], string | undefined]>([
    ['a server that answers', {}, undefined],
    ['one that nothing reaches', { target: lost }, 'The target is unreachable'],
    [
      'one that nothing reaches under load',
      { target: lost, window: { ...failing, errors: { connect: 9 } } },
      'The target is unreachable',
    ],
    [
      'one that answers with errors alone',
      { target: { ...lost, problem: 'HTTP 503' }, window: { ...failing, errors: { timeout: 1, http_5xx: 8 } } },
      'Every request fails (server error (5xx))',
    ],
    [
      'one that answers 503',
      { target: { ...lost, problem_status: 503 }, window: { ...failing, errors: { http_5xx: 8 } } },
      'Every request fails (503)',
    ],
    [
      'one that answers 503 before there is load',
      { target: { ...lost, problem_status: 503 } },
      'The target answers 503',
    ],
  ])('of %s', (_, change, title) => {
    const lane = laneSnapshot(change);
    expect(targetTrouble(lane)?.title).toBe(title);
    expect(describeLane(lane).label).toBe(lane.window.error_ratio === 1 ? 'Failing' : 'Running');
  });
});
