import type { ClientError, ClientHealth } from '../client';
import { inSentence } from './figures';
import { DASH, milliseconds } from './format';

const levels: Record<ClientHealth['verdict'], string> = {
  ok: 'negligible',
  noticeable: 'noticeable',
  client_bottleneck: 'too large',
  unknown: DASH,
};

const bases: Record<ClientError['of'], (metric: string) => string> = {
  p50: (metric) => metric,
  difference: (metric) => `difference in ${metric}`,
  threshold: (metric) => `distance of ${metric} from its SLO`,
};

/** Describes the load generator's own error, with the two numbers that it is computed from. */
export function verdictText(client: ClientHealth): string {
  if (client.verdict === 'unknown') {
    return 'Load generator self-check running';
  }
  const error = worst(client);
  const numbers = error
    ? `: ≤ ${milliseconds(error.error_seconds)} of ${milliseconds(error.of_seconds)} ${basis(error)}`
    : '';
  return `Load generator error ${levels[client.verdict]}${numbers}`;
}

function basis({ of, metric }: ClientError): string {
  return bases[of](inSentence(metric));
}

/** Returns the error that decides the verdict: of its level, the one that is largest relative to its reference. */
function worst({ metrics = [], verdict }: ClientHealth): ClientError | undefined {
  const share = (e: ClientError) => e.error_seconds / e.of_seconds;
  return metrics.filter(({ level }) => level === verdict).sort((a, b) => share(b) - share(a))[0];
}

/** Whether an outcome is withheld because of the load generator's own error. */
export function isWithheld({ metrics = [] }: ClientHealth): boolean {
  return metrics.some(({ level, of }) => level === 'client_bottleneck' && of !== 'p50');
}
