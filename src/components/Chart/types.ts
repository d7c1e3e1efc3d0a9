import type { Mode } from '../../client';

/** A point of a line. Without a value, the line has a gap. */
export type Point = [x: number, y: number | undefined];

/** The mode whose color a line has. */
export type Tone = Mode;

/** The style of a line: solid, dashed, dotted, rings only, or a bar at each value. */
export type Look = 'solid' | 'dashed' | 'dotted' | 'rings' | 'bars';

/** One line. */
export interface ChartLine {
  key: string;
  /** Its name in the crosshair's values. */
  name: string;
  tone: Tone;
  points: Point[];
  /** Solid by default. */
  look?: Look;
  /** With a dot at each value, where there are few. A value between two gaps always has one. */
  dots?: boolean;
  /** Replaces the tone's color. */
  color?: string;
}

/** The range of the values of a line, from the least to the largest. */
export interface ChartBand {
  /** The key of the line. */
  of: string;
  tone: Tone;
  points: Array<[x: number, low: number, high: number]>;
}

/** A moment or level with a label. */
export interface Mark {
  at: number;
  text: string;
  tone?: Tone;
}

/** A sign below a value. */
export interface Sign {
  at: [x: number, y: number];
  text: string;
}

/** An axis of moments, in milliseconds since 1970. */
export interface Span {
  from: number;
  to: number;
}

/** An axis of levels, ascending. */
export interface Levels {
  levels: number[];
  /** A label for each of them; by default the number. */
  words?: string[];
  /** The unit of the levels, for the crosshair: "conversations". */
  unit?: string;
  /** A text for each level in place of its label, for the crosshair. */
  readings?: string[];
}

/** The least and the largest value of a range. */
export type Range = [low: number, high: number];
