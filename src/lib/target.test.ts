/** @jest-environment node */
import type { LaneSnapshot } from '../client';
import { laneSnapshot } from '../test/fixtures';
import { targetKind } from './target';

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
