/** @jest-environment node */
import { laneSnapshot } from '../../test/fixtures';
import { recordedTable } from '../../lib/recorded';
import { summarise } from './recorded';
import { builtIn } from './testing';

const h200 = builtIn('h200x3-tp1-llama70b-fp8');
const h100 = builtIn('h100x8-tp2-llama70b-fp8');

describe('the summary of a recorded table', () => {
  it('spans all levels that have both modes', () => {
    const { levels } = summarise(h200);
    expect([levels.length, levels[0], levels.at(-1)]).toEqual([15, 40, 180]);
    expect(summarise({ rows: h200.rows.slice(1) }).levels[0]).toBe(50);
    expect(summarise({ rows: [] })).toMatchObject({ levels: [], worse: [], top: undefined });
  });

  it('calls a level worse where the load generator does', () => {
    const improvement = { percent: -1, outcome: 'no_difference' as const };
    const advantages = [{ concurrency: 140, speculation: 'not_recorded' as const, of: { ttft_p95: improvement } }];
    expect(summarise({ ...h200, advantages: undefined }).worse).toEqual([140, 150, 170, 180]);
    expect(summarise({ ...h200, advantages }).worse).toEqual([150, 170, 180]);
  });

  it('has gains with the unfavourable end, and leaves out what was not recorded', () => {
    const { tokensGain, ttftGain, tokens, ttft } = summarise(h200);
    expect(tokensGain?.min).toBeCloseTo(0.0183, 4); // 1,616.8 against 1,587.8 at 40
    expect(tokensGain?.max).toBeCloseTo(0.1398, 4); // 3,656.5 against 3,207.9 at 170
    expect(ttftGain?.max).toBeCloseTo(0.3238, 4);
    expect(ttftGain?.min).toBeCloseTo(-3.2961, 4); // 3,143 against 731.6 ms at 180
    expect([tokens.kv?.max, tokens.round_robin?.max]).toEqual([3907.7, 3434]);
    expect(ttft.kv?.min).toBeCloseTo(0.4458, 9);
    expect(summarise(h100)).toMatchObject({
      tokensGain: undefined,
      spread: undefined,
      worse: [],
      tokens: { kv: undefined },
    });
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
