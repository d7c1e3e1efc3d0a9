import type { Conversation } from '../../client';
import { DASH, digits, MS } from '../../lib/format';

type Figures = Pick<Conversation, 'figures'>;

/** Formats TTFT of each turn that has ended, in milliseconds: "612 · 224 · 219"; a dash without any. */
export function ttftsText({ figures = [] }: Figures): string {
  return figures.map(({ ttft }) => digits(ttft, MS)).join(' · ') || DASH;
}

/**
 * Returns the ratio of a conversation's prompt tokens that came from a cache; undefined where the server does not
 * report it.
 */
export function hitRate({ figures = [] }: Figures): number | undefined {
  const reported = figures.filter(({ cached_tokens }) => cached_tokens !== undefined);
  const sum = (key: 'prompt_tokens' | 'cached_tokens') => reported.reduce((total, turn) => total + (turn[key] ?? 0), 0);
  const prompt = sum('prompt_tokens');
  return prompt > 0 ? sum('cached_tokens') / prompt : undefined;
}

/** Returns the ids of the workers that have served a conversation, in the order of its turns. */
export function workersIn({ figures = [] }: Figures): string[] {
  return Array.from(new Set(figures.flatMap(({ worker }) => worker ?? [])));
}
