import type { Rect } from '../../components/Diagram';
import type { Layout, Waypoint } from './layout';

/** The most requests that are drawn per second: more could not be distinguished. Less than the steps per second. */
export const MAX_DOTS = 4;

/** From one step to the next, in milliseconds. Each costs the browser a frame: that, and not what is in it, is dear. */
export const STEP = 200;

/** Where a mark stands. */
export interface Point {
  x: number;
  y: number;
}

/** The marks along the ways. Ways have marks in common where they run together. */
interface Marks {
  points: Point[];
  /** Of each worker, in order: the marks on the way to it, as indices into points. */
  ways: number[][];
}

/** Of the marks between two boxes. */
const BETWEEN = 3;

/** How far the first mark is from a box, how far apart they are, and how much an arrow's head takes. */
const [EDGE, APART, HEAD] = [10, 20, 18];

/** The least and the most marks from the router to a worker. */
const LEG = [3, 8] as const;

/** Places the marks wherever a way can be seen: between the boxes, not beneath them. */
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

/** The first mark of all legs is the same, since they part only behind it. */
function leg(from: number, way: Waypoint[], to: number): Point[] {
  const bend = way.filter(({ x }) => x >= from && x <= to);
  const lengths = bend.map((p, i) => (i === 0 ? 0 : Math.hypot(p.x - bend[i - 1].x, p.y - bend[i - 1].y)));
  const total = lengths.reduce((a, b) => a + b, 0);
  const room = total - EDGE - HEAD;
  const count = Math.min(LEG[1], Math.max(LEG[0], Math.round(room / APART) + 1));
  const apart = room / (count - 1);
  const rest = Array.from({ length: count - 1 }, (_, k) => pointAt(bend, lengths, EDGE + (k + 1) * apart));
  return [{ x: from + EDGE, y: bend[0].y }, ...rest];
}

/** The point so far along a line of points with these distances from one to the next. */
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

/** What is to be shown: how much load there is, and which share of it goes to each worker. */
export interface Load {
  requestsPerSecond: number;
  shares: number[];
}

/** The requests under way in the drawing. */
export interface Chase {
  /** Of each worker: what part of a request it has coming. */
  owed: number[];
  travelling: Array<{ way: number; at: number }>;
}

/** Before anything travels. */
export const NO_CHASE: Chase = { owed: [], travelling: [] };

/**
 * One step on: every request goes to its next mark, and another one sets out when
 * it is time, to the worker that has most coming. So they set out evenly, and
 * each worker gets its share, whatever the two are.
 */
export function step({ owed, travelling }: Chase, { requestsPerSecond, shares }: Load, ways: number[][]): Chase {
  const rate = requestsPerSecond > 0 ? Math.min(requestsPerSecond, MAX_DOTS) : 0;
  const coming = ways.map((_, i) => (owed[i] ?? 0) + (rate * (shares[i] ?? 0) * STEP) / 1000);
  const next = travelling.map(({ way, at }) => ({ way, at: at + 1 })).filter(({ way, at }) => at <= ways[way].length);
  if (coming.reduce((a, b) => a + b, 0) < 1 - 1e-9) {
    return { owed: coming, travelling: next };
  }
  const way = coming.indexOf(Math.max(...coming));
  coming[way] -= 1;
  return { owed: coming, travelling: [...next, { way, at: 0 }] };
}

/** How a mark is lit: a request is there, or was a step ago. */
export type Light = 'head' | 'tail';

/** The lights of each mark that is lit. */
export function lights({ travelling }: Chase, ways: number[][]): Map<number, Light> {
  const lit = new Map<number, Light>();
  travelling.filter(({ at }) => at > 0).forEach(({ way, at }) => lit.set(ways[way][at - 1], 'tail'));
  travelling.filter(({ way, at }) => at < ways[way].length).forEach(({ way, at }) => lit.set(ways[way][at], 'head'));
  return lit;
}
