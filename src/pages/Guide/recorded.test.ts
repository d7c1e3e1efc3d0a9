import { laneSnapshot } from '../../test/fixtures';
import { recordedTable } from '../../lib/recorded';
import { summarise } from './recorded';
import { builtIn } from './testing';

const h200 = builtIn('h200x3-tp1-llama70b-fp8');
const h100 = builtIn('h100x8-tp2-llama70b-fp8');

describe('the summary of a recorded table', () => {
  const of200 = summarise(h200.rows);

  it('spans all levels that have both modes', () => {
    expect(of200.levels).toHaveLength(15);
    expect([of200.levels[0], of200.levels.at(-1)]).toEqual([40, 180]);
    expect(summarise(h200.rows.slice(1)).levels[0]).toBe(50);
  });

  it('tells gains with the unfavourable end', () => {
    expect(of200.tokensGain?.min).toBeCloseTo(0.0183, 4); // 1,616.8 against 1,587.8 at 40
    expect(of200.tokensGain?.max).toBeCloseTo(0.1398, 4); // 3,656.5 against 3,207.9 at 170
    expect(of200.ttftGain?.max).toBeCloseTo(0.3238, 4);
    expect(of200.ttftGain?.min).toBeCloseTo(-3.2961, 4); // 3,143 against 731.6 ms at 180
    expect(of200.peak).toEqual({ kv: 3907.7, round_robin: 3434 });
    expect(of200.hit.round_robin?.min).toBeCloseTo(0.839);
    expect(of200.hit.round_robin?.max).toBeCloseTo(0.997);
  });

  it('names the levels at which KV-aware routing is worse', () => {
    expect(of200.worse).toEqual([140, 150, 170, 180]);
    expect(of200.top?.kv.ttft.p95).toBe(3.143);
  });

  it('knows the spread between workers at the one level that has it', () => {
    expect(of200.spread).toMatchObject({ level: 170, kv: { min: 28, max: 32 }, round_robin: { min: 12, max: 14 } });
    expect(summarise(h100.rows).spread).toBeUndefined();
  });

  it('leaves out what was not recorded', () => {
    const of100 = summarise(h100.rows);
    expect(of100.tokensGain).toBeUndefined();
    expect(of100.peak).toEqual({ kv: undefined, round_robin: undefined });
    expect(of100.worse).toEqual([]);
  });

  it('of nothing is empty', () => {
    expect(summarise([])).toMatchObject({ levels: [], worse: [], top: undefined });
  });
});

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
