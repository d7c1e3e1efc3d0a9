import { laneSnapshot } from '../test/fixtures';
import { targetKind } from './target';

describe('targetKind', () => {
  const lane = (engine: string | undefined, driver = 'manual') =>
    laneSnapshot({ target: { deployment: { engine } }, state: { driver } });

  it.each([
    ['the simulated cluster by its driver', lane(undefined, 'simulated'), undefined, 'simulated'],
    ['the simulated cluster by its engine', lane('simulated trtllm'), undefined, 'simulated'],
    ['mock workers', lane('mock of vllm'), { nvext: true }, 'mock'],
    ['a Dynamo', lane('trtllm'), { nvext: true }, 'dynamo'],
    ['another server', lane('vllm'), { nvext: false }, 'plain'],
    ['nothing before the status is known', lane('vllm'), undefined, 'unknown'],
    ['nothing without a lane', undefined, { nvext: true }, 'unknown'],
  ])('knows %s', (_, of, extensions, kind) => {
    expect(targetKind(of, extensions)).toBe(kind);
  });
});
