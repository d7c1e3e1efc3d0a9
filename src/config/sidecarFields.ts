import { z } from 'zod';

import { type Limit, limits, type Problem, type Settings } from '../client';
import { decimalNumber, wholeNumber } from '../lib/input';

const number = (wrong: typeof wholeNumber, limit: Limit) =>
  z
    .string()
    .superRefine((text, { addIssue }) => {
      const message = wrong(text, limit);
      if (message) {
        addIssue(message);
      }
    })
    .transform(Number);

const milliseconds = (limit: Limit) =>
  number(decimalNumber, { ...limit, max: 1000 * limit.max }).transform((ms) => ms / 1000);

/** Makes settings of what stands in the fields: texts, SLOs in milliseconds. */
export const schema = z.object({
  slo: z.object({ ttft: milliseconds(limits['slo.ttft']), tpot: milliseconds(limits['slo.tpot']) }),
  slider: z
    .object({
      min: number(wholeNumber, limits['slider.min']),
      max: number(wholeNumber, limits['slider.max']),
      increment: number(wholeNumber, limits['slider.increment']),
    })
    .superRefine(({ min, max }, { addIssue }) => {
      if (min >= max) {
        addIssue({ code: 'custom', path: ['min'], message: `Less than ${max}` });
      }
    }),
  max_concurrency: number(wholeNumber, limits.max_concurrency),
  default_baseline: z.string(),
  title: z.string(),
  subtitle: z.string(),
});

/** What the fields hold, under the names that the API gives them. */
export type Values = z.input<typeof schema>;

/** The settings as they stand in the fields. */
export function toValues({ slo, slider, max_concurrency, default_baseline, title, subtitle }: Settings): Values {
  return {
    slo: { ttft: inMs(slo.ttft), tpot: inMs(slo.tpot) },
    slider: { min: String(slider.min), max: String(slider.max), increment: String(slider.increment) },
    max_concurrency: String(max_concurrency),
    default_baseline,
    title,
    subtitle,
  };
}

/** A millionth of a second is as exact as an SLO gets; more is binary noise. */
function inMs(seconds: number): string {
  return String(Math.round(seconds * 1e6) / 1e3);
}

/** The names of the fields that are no part of another. */
const names = [
  'slo.ttft',
  'slo.tpot',
  'slider.min',
  'slider.max',
  'slider.increment',
  'max_concurrency',
  'default_baseline',
  'title',
  'subtitle',
] as const;

/** The name of a field. */
export type FieldName = (typeof names)[number];

/** The field that a problem of the API is about. */
export function fieldOf({ field }: Problem): FieldName | undefined {
  return field === 'slider' ? 'slider.min' : names.find((name) => name === field);
}
