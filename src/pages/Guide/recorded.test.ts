/** @jest-environment node */
import { laneSnapshot } from '../../test/fixtures';
import { recordedTable } from '../../lib/recorded';
import { builtIn } from './testing';

const h200 = builtIn('h200x3-tp1-llama70b-fp8');
const h100 = builtIn('h100x8-tp2-llama70b-fp8');

describe('the table to speak of', () => {
  it('is the one that the lane is compared with', () => {
    const lane = laneSnapshot({ baseline: { name: h100.name } });
    expect(recordedTable([h200, h100], lane)).toBe(h100);
  });

  it('is one with throughput where the comparison is with something measured', () => {
    const own = { ...h200, name: 'this target', kind: 'measured' as const };
    const lane = laneSnapshot({ baseline: { name: own.name } });
    expect(recordedTable([own, h100, h200], lane)).toBe(h200);
    expect(recordedTable([own], lane)).toBeUndefined();
    expect(recordedTable(undefined, undefined)).toBeUndefined();
  });
});
