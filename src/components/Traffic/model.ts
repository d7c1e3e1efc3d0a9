import { limits, type ShapeNumber, type ShapePreset, shapes, type TrafficShape } from '../../client';
import { decimalNumber, wholeNumber } from '../../lib/input';

/** What stands in the fields; an empty text is the number of the preset. */
export interface Values extends Partial<Record<ShapeNumber, string>> {
  preset: ShapePreset;
  mix?: string;
}

/** Whether conversations are about the texts of the corpus. */
export function isRecorded({ preset }: TrafficShape): boolean {
  return preset === undefined || preset === 'recorded';
}

/** Whether a problem of the API concerns a field of the form. */
export function isOfShape(path: string | undefined): boolean {
  return path?.startsWith('shape.') ?? false;
}

/** Returns the error of a number; undefined for a valid one and for none. */
export function errorOf(name: ShapeNumber, text: string | undefined): string | undefined {
  if (!text) {
    return undefined;
  }
  return (name === 'zipf' ? decimalNumber : wholeNumber)(text, limits[`shape.${name}`]);
}

/** Returns the shape of the fields; undefined where one has an error. */
export function toShape(values: Values): TrafficShape | undefined {
  const shape: TrafficShape = { preset: values.preset };
  for (const name of shapes[values.preset].numbers) {
    if (errorOf(name, values[name])) {
      return undefined;
    }
    if (values[name]) {
      shape[name] = Number(values[name]);
    }
  }
  if (values.preset === 'mixed' && values.mix) {
    shape.mix = values.mix;
  }
  return shape;
}

/** Returns what stands in the fields for a shape. */
export function toValues({ preset = 'recorded', mix, ...rest }: TrafficShape): Values {
  const values: Values = { preset, mix };
  for (const name of shapes[preset].numbers) {
    values[name] = rest[name] ? String(rest[name]) : '';
  }
  return values;
}
