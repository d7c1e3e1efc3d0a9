import { DASH, digits, objective, plain, valueWithUnit, type Format } from '../../lib/format';
import { clock } from '../../lib/time';
import { axisFrom, type Axis } from './axis';
import type { ChartBand, ChartLine, Levels, Mark, Point, Range, Sign, Span } from './types';

/** The content of a chart. */
export interface Drawing {
  x: Span | Levels;
  lines: ChartLine[];
  /** Drawn behind the lines. */
  bands?: ChartBand[];
  /** Vertical lines with a label each. */
  marks?: Mark[];
  signs?: Sign[];
  format: Format;
  /** A horizontal line that values must not exceed: the objective. */
  slo?: number;
  /** The largest value on the axis unless zoomed; values above it are not drawn. */
  ceiling?: number;
  /** The least value that the axis of values must have; 0 by default. */
  floor?: number;
  /** The axis of values, where it does not begin at 0. */
  y?: Axis;
  /** A shaded range across the whole plot, from one value to another. */
  field?: Range;
}

/** A column of the data for each line: null is a gap, undefined no value of its own. */
type Data = [xs: number[], ...values: Array<Array<number | null | undefined>>];

/** A drawing in the form of the plot. */
export interface View extends Omit<Drawing, 'y'> {
  data: Data;
  /** The visible part of the axis. */
  shown: Range;
  y: Axis;
  /** The positions at which values can be read, as indices of the data. */
  stops: number[];
  /** Whether some values are above the axis. */
  isCut: boolean;
}

/** Makes the view of a drawing, with at most this number of steps between ticks, of the zoomed part of its axis. */
export function viewOf(drawing: Drawing, steps: number, zoom?: Range): View {
  const { x, lines, bands = [], slo, ceiling = Infinity, floor, format } = drawing;
  const data = toData(lines);
  const hasBars = lines.some(({ look }) => look === 'bars');
  const shown = zoom ?? rangeOf(x, hasBars);
  const highest = highestOf(lines, bands, shown);
  const top = Math.max(zoom ? highest : Math.min(highest, ceiling), slo === undefined ? 0 : 1.1 * slo);
  const y = drawing.y ?? axisFrom(top, steps, format, floor);
  const [xs, ...values] = data;
  const stops = Array.from(xs.keys()).filter((i) => values.some((column) => typeof column[i] === 'number'));
  return { ...drawing, data, shown, y, stops, isCut: !drawing.y && highest > y.max };
}

/** Returns lines in the form of a plot: all positions ascending, and a column of values for each line. */
export function toData(lines: ChartLine[]): Data {
  const xs = Array.from(new Set(lines.flatMap(({ points }) => points.map(([x]) => x)))).sort((a, b) => a - b);
  const columns = lines.map(({ points, look }) => {
    const none = look === 'bars' ? null : undefined; // bars take the width of all positions
    const found = new Map(points.map(([x, y]): [number, number | null] => [x, y ?? null]));
    return xs.map((x) => (found.has(x) ? found.get(x) : none));
  });
  return [xs, ...columns];
}

export function isSpan(x: Span | Levels): x is Span {
  return 'from' in x;
}

/** The margin beside the first and the last level, as a share of the axis. */
const BESIDE = 0.03;

/** Returns the whole range of an axis. Bars need the room of half a bar on either side. */
export function rangeOf(x: Span | Levels, hasBars = false): Range {
  if (isSpan(x)) {
    return [x.from, x.to];
  }
  const { levels } = x;
  const [low, high] = levels.length > 0 ? [Math.min(...levels), Math.max(...levels)] : [0, 1];
  const share = hasBars ? 0.5 / (levels.length - 1) : BESIDE;
  const beside = low < high ? share * (high - low) : 1;
  return [low - beside, high + beside];
}

function highestOf(lines: ChartLine[], bands: ChartBand[], [from, to]: Range): number {
  let highest = -Infinity;
  const see = (x: number, y: number | undefined) => {
    if (y !== undefined && y > highest && x >= from && x <= to) {
      highest = y;
    }
  };
  lines.forEach(({ points }) => points.forEach(([x, y]) => see(x, y)));
  bands.forEach(({ points }) => points.forEach(([x, , high]) => see(x, high)));
  return highest;
}

/** Returns the first and the last position of each run of values above a limit. */
export function runsAbove(points: Point[], limit: number): Array<[from: number, to: number]> {
  const runs: Array<[number, number]> = [];
  let isAbove = false;
  for (const [x, y] of points) {
    const wasAbove = isAbove;
    isAbove = y !== undefined && y > limit;
    if (isAbove && wasAbove) {
      runs[runs.length - 1][1] = x;
    } else if (isAbove) {
      runs.push([x, x]);
    }
  }
  return runs;
}

/** Formats a position: a time of day, or a level with its unit. */
export function placeText(x: Span | Levels, at: number): string {
  if (isSpan(x)) {
    return clock(at);
  }
  const reading = x.readings?.[x.levels.indexOf(at)];
  if (reading !== undefined) {
    return reading;
  }
  return x.unit ? `${levelText(x, at)} ${x.unit}` : levelText(x, at).replace(/\n.*/s, '');
}

/** Returns the label of a level below the axis. */
export function levelText(x: Span | Levels, at: number): string {
  return (isSpan(x) ? undefined : x.words?.[x.levels.indexOf(at)]) ?? plain(at);
}

/** Formats the value of a line at a position, with its band. */
interface Reading {
  line: ChartLine;
  text: string;
}

/**
 * The largest distance of another line's value from a moment, in milliseconds. Lines of two lanes have different
 * moments.
 */
const NEAR = 1500;

/** Returns the values of all lines at an index of the data. */
export function readAt({ data: [xs, ...columns], lines, bands = [], x, format }: View, index: number): Reading[] {
  return lines.flatMap((line, i) => {
    const column = columns[i];
    const at = isSpan(x) ? nearest(xs, column, index) : index;
    const value = column[at];
    if (typeof value !== 'number') {
      return [];
    }
    const band = bands.find(({ of }) => of === line.key)?.points.find(([place]) => place === xs[at]);
    const around = band && band[1] < band[2] ? ` (${digits(band[1], format)}–${digits(band[2], format)})` : '';
    return [{ line, text: valueWithUnit(value, format) + around }];
  });
}

function nearest(xs: number[], column: Data[1], index: number): number {
  return (
    [index, index - 1, index + 1].find((i) => typeof column[i] === 'number' && Math.abs(xs[i] - xs[index]) <= NEAR) ??
    index
  );
}

/** Describes a position with its values. */
export function readingText(view: View, index: number): string {
  const words = readAt(view, index).map(({ line, text }) => `${line.name} ${text}`);
  return [placeText(view.x, view.data[0][index]), ...(words.length > 0 ? words : [DASH])].join('; ');
}

/** An objective with its value. */
export function objectiveText(slo: number, format: Format): string {
  return `SLO ${objective(slo, format)}`;
}

/** Describes a chart: the highest value, the last ones, and its marks. */
export function summary(view: View): string {
  const { stops, lines, format, slo, marks = [], x } = view;
  const all = lines.flatMap(({ points }) => points.flatMap(([, y]: Point) => y ?? []));
  const last = stops.at(-1);
  return [
    last === undefined ? ', not measured' : `, at most ${valueWithUnit(Math.max(...all), format)}`,
    last === undefined ? '' : `; last ${readingText(view, last)}`,
    slo === undefined ? '' : `; ${objectiveText(slo, format)}`,
    ...marks.map(({ at, text }) => `; ${placeText(x, at)} ${text}`),
  ].join('');
}
