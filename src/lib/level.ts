import { number, plain } from './format';

/**
 * The strength of a load as the API has it: conversations in progress, 60, or new conversations per second, "12/s".
 * Each has one form, so that === compares levels. Those of different kinds are never equal and have no order.
 */
export type Level = number | string;

/** What a load holds or offers at a level. */
export type LevelKind = 'conversations' | 'rate';

const PER_SECOND = '/s';

/** What a rate may be, per second. */
export const rateLimit = { min: 0.01, max: 10_000 };

/** Returns the kind of a level. */
export function kindOf(level: Level): LevelKind {
  return typeof level === 'number' ? 'conversations' : 'rate';
}

/** Returns the number of a level without its unit. */
export function valueOf(level: Level): number {
  return typeof level === 'number' ? level : Number(level.slice(0, -PER_SECOND.length));
}

/** Returns the level of a kind, without the noise of binary fractions. */
export function levelOf(kind: LevelKind, value: number): Level {
  return kind === 'rate' ? `${Number(value.toPrecision(12))}${PER_SECOND}` : value;
}

/**
 * Reads a typed level: "60" or "12/s". A text without a number is undefined. Which values are allowed depends on where
 * the level is used.
 */
export function parseLevel(text: string): Level | undefined {
  const digits = text.trim().replace(/\s*\/s$/, '');
  const value = digits === '' ? NaN : Number(digits);
  return Number.isNaN(value) ? undefined : levelOf(text.includes('/') ? 'rate' : 'conversations', value);
}

/** Formats a level with its unit: "1,000" or "12/s"; a dash without one. */
export function levelText(level: Level | undefined): string {
  return typeof level === 'string' ? plain(valueOf(level)) + PER_SECOND : number(level);
}

/** Formats a level with what it counts: "60 conversations" or "12 conversations/s". */
export function levelWords(level: Level): string {
  const value = valueOf(level);
  const unit = units[kindOf(level)];
  return `${plain(value)} ${value === 1 ? unit.replace('conversations', 'conversation') : unit}`;
}

const units: Record<LevelKind, string> = { conversations: 'conversations', rate: 'conversations/s' };

/** Describes what is in progress of a level: "57 of 60 conversations" or "84 in progress at 12 conversations/s". */
export function progressText(actual: number, target: Level): string {
  const words = levelWords(target);
  return kindOf(target) === 'rate' ? `${number(actual)} in progress at ${words}` : `${number(actual)} of ${words}`;
}

/** Whether a level is lower than another one of the same kind. */
export function isBelow(a: Level, b: Level): boolean {
  return kindOf(a) === kindOf(b) && valueOf(a) < valueOf(b);
}

/** Orders levels by kind, then by value, for sort. */
export function compareLevels(a: Level, b: Level): number {
  return kindOf(a).localeCompare(kindOf(b)) || valueOf(a) - valueOf(b);
}

/** Returns the lowest and the highest level of each kind. */
export function rangesOf(levels: Level[]): Array<[low: Level, high: Level]> {
  const sorted = [...levels].sort(compareLevels);
  const kinds = new Set(sorted.map(kindOf));
  return [...kinds].map((kind) => {
    const own = sorted.filter((level) => kindOf(level) === kind);
    return [own[0], own[own.length - 1]];
  });
}

/** Whether a level lies between the lowest and the highest one of its kind. */
export function isWithin(level: Level, levels: Level[]): boolean {
  return rangesOf(levels).some(
    ([low, high]) => kindOf(low) === kindOf(level) && !isBelow(level, low) && !isBelow(high, level)
  );
}

/** Returns the name of what levels are: of an axis, or the head of a column. */
export function levelsName(levels: Level[]): 'Concurrency' | 'Rate' | 'Level' {
  const rates = levels.filter((level) => kindOf(level) === 'rate').length;
  return rates === 0 ? 'Concurrency' : rates === levels.length ? 'Rate' : 'Level';
}

/** Returns the axis of a chart over levels of one kind. */
export function axisOf(levels: Level[]): { levels: number[]; unit: string } {
  const values = [...new Set(levels)].sort(compareLevels).map(valueOf);
  return { levels: values, unit: units[kindOf(levels[0] ?? 0)] };
}
