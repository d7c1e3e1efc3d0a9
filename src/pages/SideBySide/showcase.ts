import type { Showcase, ShowcaseSide, Twin } from '../../client';
import { nameOfLane } from '../../components/Twin';
import { milliseconds, number } from '../../lib/format';

/** Describes the state of an answer in a few words. */
export function stateOf({ sent, done, ttft, error }: ShowcaseSide): string {
  if (error) {
    return `Failed: ${error}`;
  }
  if (done) {
    return 'Done';
  }
  if (ttft !== undefined) {
    return 'Answering';
  }
  return sent ? 'Waiting for the first token' : 'Not sent yet';
}

/** Returns which lane leads in the current turn and by how much, in a sentence; undefined before a first token. */
export function leader(twin: Pick<Twin, 'a' | 'b'>, { a, b }: Pick<Showcase, 'a' | 'b'>): string | undefined {
  const names = { a: nameOfLane(twin, twin.a.lane), b: nameOfLane(twin, twin.b.lane) };
  const [ta, tb] = [a.ttft, b.ttft];
  if (ta !== undefined && tb !== undefined) {
    const lead = Math.abs(ta - tb);
    return ta === tb
      ? 'Both had their first token at the same time'
      : `${ta < tb ? names.a : names.b} was first, by ${milliseconds(lead)}`;
  }
  const first = ta !== undefined ? 'a' : tb !== undefined ? 'b' : undefined;
  if (!first) {
    return undefined;
  }
  const other = { a: b, b: a }[first];
  return `${names[first]} is first${other.error ? ': the other one failed' : ''}`;
}

/** Describes the progress of a showcase. */
export function progress({ state, turn, turns, message }: Showcase): string {
  switch (state) {
    case 'running':
      return `Turn ${turn} of ${turns}`;
    case 'ended':
      return turns === 1 ? 'Ended after one turn' : `Ended after ${number(turns)} turns`;
    case 'cancelled':
      return message
        ? `Ended in turn ${turn} of ${turns}: ${message}`
        : `Ended by an operator in turn ${turn} of ${turns}`;
    case 'failed':
      return `Failed in turn ${turn} of ${turns}${message ? `: ${message}` : ''}`;
  }
}

/** Returns how often each lane was first in the ended turns, in a sentence; undefined before the first. */
export function tally(twin: Pick<Twin, 'a' | 'b'>, { results }: Showcase): string | undefined {
  const decided = results.filter(({ first }) => first);
  if (decided.length === 0) {
    return undefined;
  }
  const wins = (lane: string) => decided.filter(({ first }) => first === lane).length;
  return [twin.a.lane, twin.b.lane].map((lane) => `${nameOfLane(twin, lane)} first ${times(wins(lane))}`).join(', ');
}

function times(n: number): string {
  return n === 0 ? 'never' : n === 1 ? 'once' : n === 2 ? 'twice' : `${n} times`;
}
