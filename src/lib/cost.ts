import { figures, type LaneSnapshot } from '../client';
import { valueWithUnit, type Format } from './format';

type Cost = NonNullable<LaneSnapshot['cost']>;

/** How costs are written, by their figures. */
export const COSTS = {
  joules_per_million_tokens: { unit: 'MJ', factor: 1e-6, decimals: 2 },
  joules_per_good_turn: { unit: 'J', decimals: 0 },
  dollars_per_million_tokens: { unit: '$', decimals: 2 },
  dollars_per_good_turn: { unit: '$', decimals: 5 },
  tokens_per_second_per_gpu: { decimals: 1 },
  tokens_per_second_per_user: { decimals: 1 },
} satisfies Partial<Record<keyof Cost, Format>>;

/** The keys of the costs, in the order of screens. */
export const costKeys = Object.keys(COSTS) as Array<keyof typeof COSTS>;

/** Returns the known costs in words, and that power is simulated where it is. */
export function costTexts(cost: Cost): string[] {
  const texts = costKeys
    .filter((key) => cost[key] !== undefined)
    .map((key) => `${figures[key].name}: ${valueWithUnit(cost[key], COSTS[key])}`);
  return cost.power_simulated ? [...texts, 'the power is simulated'] : texts;
}
