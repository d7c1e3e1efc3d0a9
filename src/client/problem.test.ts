/** @jest-environment node */
import { asProblem, Problem, toProblem } from './problem';

describe('toProblem', () => {
  it.each([
    [
      422,
      { detail: 'turns.min: 9 is not allowed', title: 'x', field: 'turns.min', allowed: '1 to 5' },
      'turns.min: 9 is not allowed',
    ],
    [409, { title: 'Conflict' }, 'Conflict'],
    [502, { message: 'plugin unavailable' }, 'plugin unavailable'],
    [403, '', 'Your role can view this but not change it.'],
    [0, undefined, 'No response. Check the network and that the server is running.'],
    [500, '<html>', 'The server answered with status 500.'],
    [500, { detail: '', title: 7 }, 'The server answered with status 500.'],
  ])('of status %d and %j', (status, body, words) => {
    const problem = toProblem(status, body);
    expect(problem.message).toBe(words);
    expect(problem.status).toBe(status);
  });

  it('names the field and its allowed values', () => {
    expect(toProblem(422, { detail: 'x', field: 'slo.ttft', allowed: '1 to 5' })).toMatchObject({
      field: 'slo.ttft',
      allowed: '1 to 5',
    });
  });
});

describe('asProblem', () => {
  it('keeps a problem and wraps anything else', () => {
    const problem = new Problem(409, 'not now');
    expect(asProblem(problem)).toBe(problem);
    expect(asProblem(new Error('broken')).message).toBe('broken');
    expect(asProblem(undefined).status).toBe(0);
  });
});
