import { Problem, type SweepList } from '../../client';
import {
  defaultsOf,
  durationText,
  errorsOf,
  fieldOfProblem,
  isOffered,
  optionsOf,
  split,
  toRequest,
  unitOf,
  fieldsOf,
  type Values,
} from './form';
import { defaults, listOf } from './fixtures';

const { limits } = listOf();

describe.each(['trial', 'sweep', 'capacity'] as const)('the form of a %s', (kind) => {
  it('has the load generator’s defaults', () => {
    const { title: _, ...usual } = { ...defaults[kind] };
    expect(errorsOf(kind, defaultsOf(defaults[kind]), limits)).toEqual({});
    expect(toRequest(kind, defaultsOf(defaults[kind]))).toEqual(usual);
  });
});

it('has differences in per cent, of shares in points, objectives in milliseconds and times in minutes', () => {
  const values = defaultsOf(defaults.trial);
  expect(values).toMatchObject({ smallest: '5', 'slo.ttft': '600', 'slo.tpot': '60', max_time: '60' });
  const smallest = fieldsOf('trial').find(({ name }) => name === 'smallest')!;
  expect(unitOf(smallest, values)).toBe('%');
  expect(unitOf(smallest, { ...values, primary: 'goodput' })).toBe('points');
  expect(toRequest('trial', { ...values, smallest: '7.5', 'slo.ttft': '450', max_time: '12.5' })).toMatchObject({
    smallest: 0.075,
    slo: { ttft: 0.45, tpot: 0.06 },
    max_time: 750,
  });
});

it('reports an invalid value at its field', () => {
  const errors = (kind: 'trial' | 'sweep' | 'capacity', change: object) =>
    errorsOf(kind, { ...defaultsOf(defaults[kind]), ...change }, limits);
  expect(errors('trial', { smallest: '60' })).toEqual({ smallest: 'A number from 0.1 to 50' });
  expect(errors('trial', { levels: '60, 120' })).toEqual({ levels: 'One level' });
  expect(errors('trial', { levels: 'many' })).toEqual({ levels: 'A whole number from 1 to 10000' });
  expect(errors('trial', { levels: '12/s' })).toEqual({});
  expect(errors('trial', { levels: '0/s' })).toEqual({ levels: 'A rate from 0.01 to 10000/s' });
  expect(errors('sweep', { levels: '2/s, 2.0/s' })).toEqual({ levels: 'Each level once' });
  expect(errors('sweep', { levels: '60, 2/s' })).toEqual({ levels: 'Levels of one kind: conversations, or rates' });
  expect(errors('trial', { seed: '-1' })).toEqual({ seed: 'A whole number, not below 0' });
  expect(errors('trial', { 'slo.ttft': '0' })).toEqual({ 'slo.ttft': 'A number above 0, up to 3600000' });
  expect(errors('sweep', { levels: '60, 60' })).toEqual({ levels: 'Each level once' });
  expect(errors('sweep', { levels: '' })).toEqual({ levels: 'At least one level' });
  expect(errors('sweep', { levels: '60, 1.5' })).toEqual({ levels: 'Each level: a whole number from 1 to 10000' });
  expect(errors('sweep', { repeats: '2.5' })).toEqual({ repeats: 'A whole number from 1 to 100' });
  expect(errors('sweep', { modes: '' })).toEqual({ modes: 'At least one mode' });
  expect(errors('capacity', { levels: '60' })).toEqual({ levels: 'At least two levels' });
  expect(errors('capacity', { modes: 'kv off, kv draft, kv eagle3' })).toEqual({ modes: 'One or two modes' });
});

it('of a trial has more modes than two, with a question, and no lanes', () => {
  const values = {
    ...defaultsOf(defaults.trial),
    modes: 'kv off, least_loaded off',
    together: 'true',
    question: 'order',
  };
  const request = toRequest('trial', values);
  expect(request).toMatchObject({
    modes: [
      { mode: 'round_robin', speculation: 'off' },
      { mode: 'kv', speculation: 'off' },
      { mode: 'least_loaded', speculation: 'off' },
    ],
    question: 'order',
  });
  expect(request.together).toBeUndefined();
  const offered = (values: Values) =>
    fieldsOf('trial')
      .filter((field) => isOffered(field, listOf(), values))
      .map(({ name }) => name);
  expect(offered(values)).toContain('question');
  expect(offered(values)).not.toContain('together');
  expect(offered({ ...values, modes: '' })).not.toContain('question');
  expect(errorsOf('trial', { ...values, a: 'kv off' }, limits)).toEqual({
    modes: 'Each one once; only a trial of two arms may compare an arm with itself',
  });
});

it('distinguishes modes that differ in a speculation without a name', () => {
  const label = (...modes: SweepList['modes']) => optionsOf('modes', { ...listOf(), modes }).map((one) => one.label);
  const [off, unknown] = [
    { mode: 'kv', speculation: 'off' },
    { mode: 'kv', speculation: 'not_recorded' },
  ] as const;
  expect(label(off)).toEqual(['KV-aware']);
  expect(label(off, unknown)).toEqual(['KV-aware, speculation off', 'KV-aware, speculation not recorded']);
});

it('reads lists with commas, semicolons or spaces', () => {
  expect(split('60, 80;100 120,')).toEqual(['60', '80', '100', '120']);
  expect(split('2/s 4.5/s')).toEqual(['2/s', '4.5/s']);
  expect(toRequest('sweep', { levels: '2/s 4.5 /s' }).levels).toEqual(['2/s', '4.5/s']);
  expect(split('kv off, round_robin off')).toEqual(['kv off', 'round_robin off']);
});

it('finds the field of a problem', () => {
  const at = (kind: 'trial' | 'sweep', field?: string) => fieldOfProblem(kind, new Problem(422, 'no', field));
  expect(at('trial', 'modes')).toBe('b');
  expect(at('sweep', 'modes.mode')).toBe('modes');
  expect(at('sweep', 'slo.ttft')).toBe('slo.ttft');
  expect(at('sweep', 'primary')).toBeUndefined();
  expect(at('sweep')).toBeUndefined();
});

it('derives the duration from the request alone', () => {
  expect(durationText(defaults.trial)).toBe('At most 1 h 0 min; it ends automatically once decided.');
  expect(durationText(defaults.sweep)).toBe(
    '18 spans of at least 6 min 0 s: 1 h 48 min, plus the time for the changes between them.'
  );
});

describe('a sweep on two lanes', () => {
  const limits: SweepList['limits'] = {};

  it('has two modes, one on each lane, that do not follow each other', () => {
    const lanes = fieldsOf('sweep').find(({ entry }) => entry === 'lanes');
    expect(lanes?.help).toContain('even number of repeats');
    const errors = (values: Values) => errorsOf('sweep', { levels: '60', seed: '1', ...values }, limits);
    const three = 'kv off, round_robin off, least_loaded off';
    expect(errors({ modes: three, together: 'false', order: 'mode_after_mode' })).toEqual({});
    expect(errors({ modes: three, together: 'true', order: 'mode_after_mode' })).toEqual({
      modes: 'Two modes, one on each lane',
      order: 'Alternating modes, since both run at the same time',
    });
    expect(errors({ modes: 'kv off, round_robin off', together: 'true', order: 'interleaved' })).toEqual({});
  });

  it('takes half the time', () => {
    const request = { ...defaults.sweep, together: true, modes: defaults.sweep.modes?.slice(0, 2), repeats: 4 };
    expect(durationText(request)).toContain('two at a time: ');
    expect(toRequest('sweep', defaultsOf(request)).together).toBe(true);
  });
});

describe('a trial on two lanes', () => {
  const list = (together?: boolean) => ({ defaults: [{ kind: 'trial' as const, together }] }) as SweepList;
  const lanes = fieldsOf('trial').find(({ entry }) => entry === 'lanes')!;

  it('is a choice where there are two', () => {
    expect(isOffered(lanes, list(true), {})).toBe(true);
    expect(isOffered(lanes, list(false), {})).toBe(false);
    expect(optionsOf('lanes', list(true)).map(({ value }) => value)).toEqual(['true', 'false']);
  });

  it('is requested as chosen', () => {
    const values = defaultsOf({ kind: 'trial', together: true, levels: [60], modes: [] });
    expect(values.together).toBe('true');
    expect(toRequest('trial', values).together).toBe(true);
    expect(toRequest('trial', { ...values, together: 'false' }).together).toBe(false);
  });
});
