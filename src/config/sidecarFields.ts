import { z } from 'zod';

import { type Limit, limits, Problem, type Settings } from '../client';
import { decimalNumber, wholeNumber } from '../lib/input';
import { vendors, type VendorName } from '../vendor';

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

/** Parses settings from the fields, whose values are texts and SLOs in milliseconds. */
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
  vendor: z.enum(Object.keys(vendors) as VendorName[]),
});

/** The values of the fields, by the names of the API. */
export type Values = z.input<typeof schema>;

/** Formats settings for the fields. */
export function toValues({
  slo,
  slider,
  max_concurrency,
  default_baseline,
  title,
  subtitle,
  vendor,
}: Settings): Values {
  return {
    slo: { ttft: inMs(slo.ttft), tpot: inMs(slo.tpot) },
    slider: { min: String(slider.min), max: String(slider.max), increment: String(slider.increment) },
    max_concurrency: String(max_concurrency),
    default_baseline,
    title,
    subtitle,
    vendor,
  };
}

/** Rounds an SLO to a millionth of a second. Further digits are binary noise. */
function inMs(seconds: number): string {
  return String(Math.round(seconds * 1e6) / 1e3);
}

/** The labels of the fields, by the names of the API. */
export const labels = {
  'slo.ttft': 'SLO of TTFT p95',
  'slo.tpot': 'SLO of TPOT p95',
  'slider.min': 'Slider from',
  'slider.max': 'Slider to',
  'slider.increment': 'Slider increment',
  max_concurrency: 'Highest concurrency',
  default_baseline: 'Default baseline',
  title: 'Title',
  subtitle: 'Subtitle',
  vendor: 'Vendor',
} as const;

/** Returns the label of a field. */
export type FieldName = keyof typeof labels;

/** Returns the field that a problem of the API concerns. */
export function fieldOf({ field }: Problem): FieldName | undefined {
  if (field === 'slider') {
    return 'slider.min';
  }
  return field !== undefined && field in labels ? (field as FieldName) : undefined;
}

/** Returns a problem of the API with the field's label in place of its name. */
export function withFieldLabel(problem: Problem): Problem {
  const { status, message, field, allowed } = problem;
  const name = fieldOf(problem);
  if (!field || !name || !message.startsWith(`${field}: `)) {
    return problem;
  }
  const label = field === 'slider' ? 'Slider' : labels[name];
  return new Problem(status, label + message.slice(field.length), field, allowed);
}
