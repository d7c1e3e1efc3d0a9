/** @jest-environment node */
import { nameOf, shortName } from './workers';

it.each([
  ['worker-1', 'worker-1'],
  ['kvbooth-0-trtllmworker-7c9f-x7f9k', '…trtllmworker-7c9f-x7f9k'],
  ['worker-a.inference.example.com:9090', 'worker-a.inference.example.com:9090'],
])('the worker %s is called %s', (name, short) => {
  expect(shortName(name)).toBe(short);
});

it.each([
  ['7', 'worker-1'],
  ['pod-b', 'pod-b'],
  ['16549284283275536882', '…536882'],
  ['http-engine-3', 'http-engine-3'],
])('the worker that a turn names %s is called %s', (named, name) => {
  const worker = { gpus: [], not_reported: [] };
  expect(
    nameOf(named, [
      { ...worker, id: '7', name: 'worker-1' },
      { ...worker, id: '10.0.0.2:9090', name: 'pod-b' },
    ])
  ).toBe(name);
});
