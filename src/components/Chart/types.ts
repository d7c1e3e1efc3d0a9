import type { Mode } from '../../client';

/** A place of a line; where there is no value, the line has a gap. */
export type Point = [x: number, y: number | undefined];

/** The mode whose color a line has. */
export type Tone = Mode;

/** How a line is drawn: through, dashed, as rings alone, or as a bar at each value. */
export type Look = 'solid' | 'dashed' | 'rings' | 'bars';

/** One line. */
export interface ChartLine {
  key: string;
  /** What the crosshair calls it. */
  name: string;
  tone: Tone;
  points: Point[];
  /** Solid without it. */
  look?: Look;
  /** With a dot at each value, where there are few; a value between two gaps always has one. */
  dots?: boolean;
  /** A color in the place of the tone's. */
  color?: string;
}

/** The range of the values of a line, from the least to the largest. */
export interface ChartBand {
  /** The key of the line. */
  of: string;
  tone: Tone;
  points: Array<[x: number, low: number, high: number]>;
}

/** A moment or level with a word. */
export interface Mark {
  at: number;
  text: string;
  tone?: Tone;
}

/** An axis of moments, in milliseconds since 1970. */
export interface Span {
  from: number;
  to: number;
}

/** An axis of the levels there are, ascending. */
export interface Levels {
  levels: number[];
  /** A word for each of them; the number without it. */
  words?: string[];
  /** What they count, for the crosshair: "conversations". */
  unit?: string;
}

/** The least and the largest value of a range. */
export type Range = [low: number, high: number];
