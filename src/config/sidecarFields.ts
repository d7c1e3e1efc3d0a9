import type { Settings, SettingsPatch } from '../client';
import { decimalNumber, wholeNumber } from '../lib/input';

/** What the fields hold: texts, SLOs in milliseconds. */
export interface Values {
  sloTTFT: string;
  sloTPOT: string;
  sliderMin: string;
  sliderMax: string;
  sliderIncrement: string;
  maxConcurrency: string;
  defaultBaseline: string;
  title: string;
  subtitle: string;
}

/** The names of the fields. */
export type FieldName = keyof Values;

const paths: Record<string, FieldName> = {
  'slo.ttft': 'sloTTFT',
  'slo.tpot': 'sloTPOT',
  slider: 'sliderMin',
  'slider.min': 'sliderMin',
  'slider.max': 'sliderMax',
  'slider.increment': 'sliderIncrement',
  max_concurrency: 'maxConcurrency',
  default_baseline: 'defaultBaseline',
  title: 'title',
  subtitle: 'subtitle',
};

/** The field that a problem of the API is about. */
export function fieldOf(path: string | undefined): FieldName | undefined {
  return path === undefined ? undefined : paths[path];
}

/** The settings as they stand in the fields. */
export function toValues(settings: Settings): Values {
  const { slo, slider } = settings;
  return {
    sloTTFT: inMs(slo.ttft),
    sloTPOT: inMs(slo.tpot),
    sliderMin: String(slider.min),
    sliderMax: String(slider.max),
    sliderIncrement: String(slider.increment),
    maxConcurrency: String(settings.max_concurrency),
    defaultBaseline: settings.default_baseline,
    title: settings.title,
    subtitle: settings.subtitle,
  };
}

/** A millionth of a second is as exact as an SLO gets; more is binary noise. */
function inMs(seconds: number): string {
  return String(Math.round(seconds * 1e6) / 1e3);
}

/** What is wrong, by field. The ranges are the API's. */
export function check(values: Values): Partial<Values> {
  const errors = {
    sloTTFT: decimalNumber(values.sloTTFT, 0, 3_600_000, true),
    sloTPOT: decimalNumber(values.sloTPOT, 0, 3_600_000, true),
    sliderMin: wholeNumber(values.sliderMin, 1, 10_000),
    sliderMax: wholeNumber(values.sliderMax, 1, 10_000),
    sliderIncrement: wholeNumber(values.sliderIncrement, 1, 10_000),
    maxConcurrency: wholeNumber(values.maxConcurrency, 1, 10_000),
  };
  if (!errors.sliderMin && !errors.sliderMax && Number(values.sliderMin) >= Number(values.sliderMax)) {
    errors.sliderMin = `Less than ${values.sliderMax}`;
  }
  return Object.fromEntries(Object.entries(errors).filter(([, error]) => error !== undefined));
}

/** What is to change. */
export function toPatch(values: Values, stored: Values): SettingsPatch {
  const changed = (...names: FieldName[]) => names.some((name) => values[name] !== stored[name]);
  return {
    ...(changed('sloTTFT', 'sloTPOT') && {
      slo: { ttft: Number(values.sloTTFT) / 1000, tpot: Number(values.sloTPOT) / 1000 },
    }),
    ...(changed('sliderMin', 'sliderMax', 'sliderIncrement') && {
      slider: {
        min: Number(values.sliderMin),
        max: Number(values.sliderMax),
        increment: Number(values.sliderIncrement),
      },
    }),
    ...(changed('maxConcurrency') && { max_concurrency: Number(values.maxConcurrency) }),
    ...(changed('defaultBaseline') && { default_baseline: values.defaultBaseline }),
    ...(changed('title') && { title: values.title }),
    ...(changed('subtitle') && { subtitle: values.subtitle }),
  };
}
