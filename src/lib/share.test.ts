import { share } from './share';

describe('share', () => {
  it('keeps what says the same', () => {
    const prev = { a: [1, { b: 2 }], c: { d: null }, e: 'x' };
    expect(share(prev, JSON.parse(JSON.stringify(prev)))).toBe(prev);
  });

  it('keeps the parts that say the same', () => {
    const prev = { same: { deep: [1, 2] }, list: [{ n: 1 }, { n: 2 }], count: 1 };
    const next = share(prev, { same: { deep: [1, 2] }, list: [{ n: 1 }, { n: 3 }], count: 2 });
    expect(next).toEqual({ same: { deep: [1, 2] }, list: [{ n: 1 }, { n: 3 }], count: 2 });
    expect(next.same).toBe(prev.same);
    expect(next.list[0]).toBe(prev.list[0]);
    expect(next.list[1]).not.toBe(prev.list[1]);
  });

  it.each([
    [undefined, { a: 1 }],
    [{ a: 1 }, undefined],
    [{ a: 1 }, { a: 1, b: undefined }],
    [{ a: 1, b: 2 }, { a: 1 }],
    [[1, 2], [1]],
    [[], {}],
    [{}, []],
    [null, {}],
    [1, 2],
    [{ a: null }, { a: {} }],
  ])('of %j and %j gives the second', (prev, next) => {
    expect(share<unknown>(prev, next)).toStrictEqual(next);
  });

  it('changes nothing', () => {
    const prev = Object.freeze({ a: Object.freeze([1]), b: 1 });
    const next = Object.freeze({ a: Object.freeze([1]), b: 2 });
    expect(share(prev, next)).toEqual({ a: [1], b: 2 });
  });
});
