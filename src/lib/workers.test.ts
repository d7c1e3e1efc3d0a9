/** @jest-environment node */
import { shortName } from './workers';

it.each([
  ['worker-1', 'worker-1'],
  ['kvbooth-0-trtllmworker-7c9f-x7f9k', '…trtllmworker-7c9f-x7f9k'],
  ['worker-a.inference.example.com:9090', 'worker-a.inference.example.com:9090'],
])('the worker %s is called %s', (name, short) => {
  expect(shortName(name)).toBe(short);
});
