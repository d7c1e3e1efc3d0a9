import type { HistoryPoint } from '../../client';
import { SETTLING, type ChartLine, type Mark } from '../../components/Chart';
import { SIDES, type SideKey } from '../../components/Twin';
import { ceilingOf, changesOf, linesOf, type Value } from '../Stage/history';

/** The line style of each side. The color is the mode's, which both sides may share. */
export const LOOKS = { a: 'solid', b: 'dashed' } as const;

/** The last ten minutes of both sides. */
export type Histories = Record<SideKey, HistoryPoint[]>;

/** The lines of both sides in one graph. */
export function linesOfBoth(histories: Histories, value: Value, names: Record<SideKey, string>): ChartLine[] {
  return SIDES.flatMap((side) =>
    linesOf(histories[side], value, LOOKS[side]).map((line) => ({
      ...line,
      key: `${side} ${line.key}`,
      name: line.look === SETTLING.look ? `${names[side]}, settling` : names[side],
    }))
  );
}

/** The largest value that the axis of both sides has to hold; undefined until both have settled. */
export function ceilingOfBoth(histories: Histories, value: Value): number | undefined {
  const [a, b] = SIDES.map((side) => ceilingOf(histories[side], value));
  return a === undefined || b === undefined ? undefined : Math.max(a, b);
}

/** The distance within which changes of the two sides count as one, in milliseconds: modes change together. */
const TOGETHER = 60_000;

/** Returns the times at which the mode of either side changed. A change of both is one mark. */
export function changesOfBoth({ a, b }: Histories): Mark[] {
  const marks = [...changesOf(a), ...changesOf(b)].sort((one, other) => one.at - other.at);
  return marks
    .filter((mark, i) => i === 0 || mark.at - marks[i - 1].at > TOGETHER)
    .map(({ at }) => ({ at, text: 'modes changed' }));
}
