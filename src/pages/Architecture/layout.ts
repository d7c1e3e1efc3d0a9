import type { Rect } from '../../components/Diagram';

/** A point of a way, and at which share of the whole way it lies. */
export interface Waypoint {
  x: number;
  y: number;
  at: number;
}

/** Where everything of the request path stands, in units of the view box. */
export interface Layout {
  width: number;
  height: number;
  client: Rect;
  enduser: Rect;
  frontend: Rect;
  router: Rect;
  discovery: Rect;
  request: Rect;
  events: Rect;
  prometheus: Rect;
  workers: Rect[];
  /** How much fits into a worker's box. */
  detail: 'full' | 'line' | 'name';
  /** Request path to each worker, from the load generator on. */
  ways: Waypoint[][];
  /** The line from the router to each worker, as path data. */
  legs: string[];
}

const WIDTH = 1000;
const TOP = 84; // below the discovery plane
const COLUMN = { x: 740, width: 260 };
const SIDE = 190;

/** Workers up to which each has room for all its numbers, and up to which they stand in one column. */
const FULL = 4;
const ONE_COLUMN = 8;

/** Places the parts for so many workers. */
export function layOut(workers: number): Layout {
  const { boxes, height: column } = placeWorkers(workers);
  const main = Math.max(300, column);
  const centre = TOP + main / 2;
  const bottom = TOP + main + 44;
  const middle = (x: number, width: number, height: number): Rect => ({ x, y: centre - height / 2, width, height });
  const shift = (main - column) / 2; // few workers stand in the middle
  const placed = boxes.map((b) => ({ ...b, y: b.y + shift }));
  const client = middle(0, SIDE, 140);
  return {
    width: WIDTH,
    height: bottom + 64,
    client,
    enduser: { x: 0, y: client.y - 36 - 92, width: SIDE, height: 92 },
    frontend: middle(250, 170, 140),
    router: middle(480, 190, 140),
    discovery: { x: 250, y: 0, width: WIDTH - 250, height: 44 },
    request: { x: 375, y: centre + 88, width: 150, height: 40 },
    events: { x: 480, y: bottom + 10, width: WIDTH - 480, height: 44 },
    prometheus: { x: 0, y: bottom, width: SIDE, height: 64 },
    workers: placed,
    detail: workers <= FULL ? 'full' : workers <= ONE_COLUMN ? 'line' : 'name',
    ways: placed.map((b) => way(centre, b)),
    legs: placed.map((b) => leg(centre, b)),
  };
}

function placeWorkers(n: number): { boxes: Rect[]; height: number } {
  const columns = n > ONE_COLUMN ? 2 : 1;
  const gap = n <= FULL ? 16 : 10;
  const height = n <= FULL ? 108 : 62;
  const width = (COLUMN.width - (columns - 1) * gap) / columns;
  const boxes = Array.from({ length: n }, (_, i) => ({
    x: COLUMN.x + (i % columns) * (width + gap),
    y: TOP + Math.floor(i / columns) * (height + gap),
    width,
    height,
  }));
  const rows = Math.ceil(n / columns);
  return { boxes, height: rows === 0 ? 0 : rows * height + (rows - 1) * gap };
}

/** From the router into a worker: in the second column, beneath the first one's. */
function leg(centre: number, { x, y, height }: Rect): string {
  const end = y + height / 2;
  const to = COLUMN.x;
  return `M 670 ${centre} C 705 ${centre} ${to - 35} ${end} ${to} ${end} H ${x}`;
}

/** Into how many straight pieces the bend into a worker is cut. */
const PIECES = 6;

/** From the load generator through frontend and router into a worker, at an even pace. */
function way(centre: number, { x, y, height }: Rect): Waypoint[] {
  const end = y + height / 2;
  const [from, to] = [670, COLUMN.x];
  const bend = Array.from({ length: PIECES }, (_, i) => {
    const t = (i + 1) / PIECES;
    const along = (a: number, b: number, c: number, d: number) =>
      (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t ** 2 * c + t ** 3 * d;
    return { x: along(from, from + 35, to - 35, to), y: along(centre, centre, end, end) };
  });
  const points = [{ x: 190, y: centre }, { x: from, y: centre }, ...bend, { x: x + 1, y: end }];
  const lengths = points.map((p, i) => (i === 0 ? 0 : Math.hypot(p.x - points[i - 1].x, p.y - points[i - 1].y)));
  const total = lengths.reduce((a, b) => a + b, 0);
  let gone = 0;
  return points.map((p, i) => ({ ...p, at: (gone += lengths[i]) / total }));
}
