import type { Rect } from '../../components/Diagram';
import type { Layout, Point } from './layout';

/**
 * The most requests that are drawn per second. More could not be distinguished. It is below the number of steps per
 * second.
 */
export const MAX_DOTS = 4;

/** The interval of steps, in milliseconds. Each step costs the browser a frame, whatever the frame contains. */
export const STEP = 200;

/** The marks along the paths. Paths share the marks of their common part. */
interface Marks {
  points: Point[];
  /** By worker, in order: the marks on the path to it, as indices into points. */
  ways: number[][];
}

/** The marks between two boxes. */
const BETWEEN = 3;

/** The distance of the first mark from a box. */
const EDGE = 10;

/** The distance between marks. */
const APART = 20;

/** The length of an arrow's head. */
const HEAD = 18;

/** The least and the most marks from the router to a worker. */
const LEG = [3, 8] as const;

/** Places the marks where a path is visible: between the boxes, not below them. */
export function placeMarks({ client, frontend, router, workers, ways }: Layout): Marks {
  const trunk = [...between(client, frontend), ...between(frontend, router)];
  const column = Math.min(...workers.map(({ x }) => x));
  const places = new Map<string, { index: number; point: Point }>();
  const indexOf = (point: Point) => {
    const key = `${point.x.toFixed()}/${point.y.toFixed()}`;
    const place = places.get(key) ?? { index: places.size, point };
    places.set(key, place);
    return place.index;
  };
  const found = workers.map((worker, i) => {
    const bend = leg(right(router), ways[i], column);
    const last = worker.x > column ? [{ x: worker.x - 5, y: middle(worker) }] : [];
    return [...trunk, ...bend, ...last].map(indexOf);
  });
  return { points: [...places.values()].map(({ point }) => point), ways: found };
}

const right = ({ x, width }: Rect) => x + width;
const middle = ({ y, height }: Rect) => y + height / 2;

function between(a: Rect, b: Rect): Point[] {
  const apart = (b.x - right(a) - EDGE - HEAD) / (BETWEEN - 1);
  return Array.from({ length: BETWEEN }, (_, k) => ({ x: right(a) + EDGE + k * apart, y: middle(a) }));
}

/** The first mark is the same for all branches, which separate behind it. */
function leg(from: number, way: Point[], to: number): Point[] {
  const bend = way.filter(({ x }) => x >= from && x <= to);
  const lengths = bend.map((p, i) => (i === 0 ? 0 : Math.hypot(p.x - bend[i - 1].x, p.y - bend[i - 1].y)));
  const total = lengths.reduce((a, b) => a + b, 0);
  const room = total - EDGE - HEAD;
  const count = Math.min(LEG[1], Math.max(LEG[0], Math.round(room / APART) + 1));
  const apart = room / (count - 1);
  const rest = Array.from({ length: count - 1 }, (_, k) => pointAt(bend, lengths, EDGE + (k + 1) * apart));
  return [{ x: from + EDGE, y: bend[0].y }, ...rest];
}

/** The point at a distance along a line, given its points and the distances between them. */
function pointAt(line: Point[], lengths: number[], distance: number): Point {
  let left = distance;
  let i = 1;
  while (i < line.length - 1 && left > lengths[i]) {
    left -= lengths[i++];
  }
  const [a, b] = [line[i - 1], line[i]];
  const share = left / lengths[i];
  return { x: a.x + share * (b.x - a.x), y: a.y + share * (b.y - a.y) };
}

/** The traffic to draw: the request rate, and the share of each worker. */
export interface Load {
  requestsPerSecond: number;
  shares: number[];
}

/** The requests in flight in the drawing. */
export interface Chase {
  /** By worker: the fraction of a request that is due to it. */
  owed: number[];
  traveling: Array<{ way: number; at: number }>;
}

/** The state without any request. */
export const NO_CHASE: Chase = { owed: [], traveling: [] };

/**
 * Advances one step: every request moves to its next mark, and a new one starts when it is due, to the worker with the
 * largest fraction due. Requests thus start evenly, and each worker gets its share, for any rate and shares.
 */
export function step({ owed, traveling }: Chase, { requestsPerSecond, shares }: Load, ways: number[][]): Chase {
  const rate = requestsPerSecond > 0 ? Math.min(requestsPerSecond, MAX_DOTS) : 0;
  const coming = ways.map((_, i) => (owed[i] ?? 0) + (rate * (shares[i] ?? 0) * STEP) / 1000);
  const next = traveling.map(({ way, at }) => ({ way, at: at + 1 })).filter(({ way, at }) => at <= ways[way].length);
  if (coming.reduce((a, b) => a + b, 0) < 1 - 1e-9) {
    return { owed: coming, traveling: next };
  }
  const way = coming.indexOf(Math.max(...coming));
  coming[way] -= 1;
  return { owed: coming, traveling: [...next, { way, at: 0 }] };
}

/** The light of a mark: a request is there (head), or was there one step ago (tail). */
export type Light = 'head' | 'tail';

/** Returns the lights of all lit marks. */
export function lights({ traveling }: Chase, ways: number[][]): Map<number, Light> {
  const lit = new Map<number, Light>();
  traveling.filter(({ at }) => at > 0).forEach(({ way, at }) => lit.set(ways[way][at - 1], 'tail'));
  traveling.filter(({ way, at }) => at < ways[way].length).forEach(({ way, at }) => lit.set(ways[way][at], 'head'));
  return lit;
}
