import type { Shadow, ShadowChoices, ShadowFigures } from '../../client';
import { DASH, number, percent, signed, span } from '../../lib/format';
import { sentence } from '../../lib/text';

/** One row of the table: a routing policy. */
export interface Row {
  key: string;
  title: string;
  /** A label: measured, or in use. */
  word?: string;
  figures: ShadowFigures;
  /** Whether its figures are computed by the load generator's model, whose errors the notes state. */
  accounted: boolean;
}

/** Returns the measurements, and each policy's account, in the load generator's order. */
export function toRows({ measured, policies }: Shadow): Row[] {
  return [
    { key: 'measured', title: 'As measured', word: 'measured', figures: measured, accounted: false },
    ...policies.map(({ policy, title, in_force, figures }) => ({
      key: policy,
      title,
      word: in_force ? 'current' : undefined,
      figures,
      accounted: true,
    })),
  ];
}

/** A ratio's difference in points, with its sign. */
function points(ratio: number): string {
  return `${signed(100 * ratio)} points`;
}

/** Explains both errors, in sentences. */
export function errorSentences(shadow: Shadow): string[] {
  const { cache_error: cache, choices } = shadow;
  return [
    cache === undefined
      ? 'The cache model is not checked yet: no hits have been measured to compare it with.'
      : 'Cache model: with the router’s actual choices, the modeled hit rate differs from the ' +
        `measured one by ${points(cache)}.`,
    choices
      ? `Choice model: ${agreementWords(choices)}`
      : 'The choice model is checked only under KV-aware routing, where costs choose the worker.',
  ];
}

/** How often our account chose the router's worker, with coverage, ties and raw agreement. */
export function agreementWords({ turns, agreed, ties, clear, clear_agreed }: ShadowChoices): string {
  if (turns === 0) {
    return 'no turn has been compared yet.';
  }
  const share = (part: number, whole: number) => percent(part / whole);
  const clearly =
    clear > 0
      ? `our choice matched the router’s in ${share(clear_agreed, clear)} of the ${number(clear)} clear turns`
      : 'no turn was clear';
  return (
    `${clearly} (${share(clear, turns)} of the last ${number(turns)} turns are clear: ` +
    'requests in flight cannot have changed the choice). Over all these turns it matched in ' +
    `${share(agreed, turns)}; ${share(ties, turns)} were ties.`
  );
}

/** The basis of the figures, in short statements. */
export function factsOf(shadow: Shadow): string[] {
  const { requests, prompt_tokens, seconds, workers, block_tokens, worker_blocks, capacity_from, lost } = shadow;
  return [
    `${number(requests)} requests with ${number(prompt_tokens)} prompt tokens in ${span(seconds)}`,
    lost > 0 && `${number(lost)} more could not be tracked`,
    `${number(workers)} ${workers === 1 ? 'worker' : 'workers'} of ${number(worker_blocks)} ` +
      `blocks of ${number(block_tokens)} tokens ` +
      `each${capacity_from ? `, as reported by ${capacity_from}` : ''}`,
    shadow.answers_reused === undefined
      ? 'whether answers are reused from the cache is not known yet'
      : shadow.answers_reused
        ? 'answers are reused from the cache'
        : 'answers are not reused from the cache',
  ].filter((fact) => typeof fact === 'string');
}

/** Explains the source of the prompts' blocks. */
export function sourceWords({ source, message }: Shadow): string {
  const from = {
    token_ids: 'Blocks use the prompts’ own token ids, as reported by the target.',
    text: 'Blocks are derived from the text, since the target does not report token ids.',
    none: '',
  }[source];
  return [from, message && sentence(message)].filter(Boolean).join(' ');
}

/** Explains why there is nothing to show so far; undefined where there is. */
export function settlingWords({ since, requests }: Shadow): string | undefined {
  if (since === undefined) {
    return 'Settling: the model starts when the caches are known to be empty, or have been filled once.';
  }
  return requests === 0 ? 'Settling: no request has ended yet.' : undefined;
}

/** Formats a number of tokens, short where it is large: "12.3 M". */
export function tokens(count: number | undefined): string {
  if (count === undefined) {
    return DASH;
  }
  return count >= 1e7 ? `${number(count / 1e6, 1)} M` : number(count);
}
