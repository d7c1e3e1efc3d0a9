import type { Rect } from '../../components/Diagram';

/** A point of a path. */
export interface Point {
  x: number;
  y: number;
}

/** The positions of the request path's parts, in units of the view box. */
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
  /** The level of detail of a worker's box. */
  detail: 'full' | 'line' | 'name';
  /** The path to each worker, from the load generator on. */
  ways: Point[][];
  /** The line from the router to each worker, as path data. */
  legs: string[];
}

const WIDTH = 1000;
const TOP = 84; // below the discovery plane
const COLUMN = { x: 740, width: 260 };
const SIDE = 190;

/** The number of workers up to which each box has all its numbers, and up to which they form one column. */
const FULL = 4;
const ONE_COLUMN = 8;

/** Places the parts for this number of workers. */
export function layOut(workers: number): Layout {
  const { boxes, height: column } = placeWorkers(workers);
  const main = Math.max(300, column);
  const center = TOP + main / 2;
  const bottom = TOP + main + 44;
  const middle = (x: number, width: number, height: number): Rect => ({ x, y: center - height / 2, width, height });
  const shift = (main - column) / 2; // few workers are centered
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
    request: { x: 375, y: center + 88, width: 150, height: 40 },
    events: { x: 480, y: bottom + 10, width: WIDTH - 480, height: 44 },
    prometheus: { x: 0, y: bottom, width: SIDE, height: 64 },
    workers: placed,
    detail: workers <= FULL ? 'full' : workers <= ONE_COLUMN ? 'line' : 'name',
    ways: placed.map((b) => pathTo(center, b)),
    legs: placed.map((b) => leg(center, b)),
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

/** Returns the line from the router into a worker. In the second column it passes below the first column's workers. */
function leg(center: number, { x, y, height }: Rect): string {
  const end = y + height / 2;
  const to = COLUMN.x;
  return `M 670 ${center} C 705 ${center} ${to - 35} ${end} ${to} ${end} H ${x}`;
}

/** The number of straight segments of the bend into a worker. */
const PIECES = 6;

/** Returns the path from the load generator through frontend and router into a worker. */
function pathTo(center: number, { x, y, height }: Rect): Point[] {
  const end = y + height / 2;
  const [from, to] = [670, COLUMN.x];
  const bend = Array.from({ length: PIECES }, (_, i) => {
    const t = (i + 1) / PIECES;
    const along = (a: number, b: number, c: number, d: number) =>
      (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t ** 2 * c + t ** 3 * d;
    return { x: along(from, from + 35, to - 35, to), y: along(center, center, end, end) };
  });
  return [{ x: 190, y: center }, { x: from, y: center }, ...bend, { x: x + 1, y: end }];
}
