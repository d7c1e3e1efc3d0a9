import { createTheme } from '@grafana/data';

import { configOf, shapeOf } from './options';
import type { ChartLine } from './types';
import { viewOf, type Drawing } from './view';

const line = (key: string, look?: ChartLine['look']): ChartLine => ({
  key,
  name: key,
  tone: 'kv',
  look,
  points: [
    [60, 400],
    [120, 800],
  ],
});

/** Returns the data of a plot. */
function optionsOf(drawing: Partial<Drawing>) {
  const view = viewOf({ x: { levels: [60, 120] }, lines: [line('a')], format: {}, ...drawing }, 4);
  const theme = createTheme({ colors: { mode: 'dark' } });
  return configOf({ shape: shapeOf(view), view: () => view, theme, font: 23.7, group: 'all' }).getConfig();
}

const call = (made: unknown, ...args: unknown[]) => (made as (...args: unknown[]) => unknown)(...args);

it('has the axis of the view, with a font size in whole pixels, equal to the surrounding text', () => {
  const { axes = [], scales = {} } = optionsOf({});
  expect(call(scales.y.range)).toEqual([0, 800]);
  expect(call(axes[1].splits)).toEqual([0, 200, 400, 600, 800]);
  expect(call(axes[1].values)).toEqual(['0', '200', '400', '600', '800']);
  expect(axes.map(({ font }) => font)).toEqual(axes.map(() => expect.stringMatching(/^24px 'Inter'/)));
});

it('has a label for each level that fits', () => {
  const { axes = [] } = optionsOf({ x: { levels: [60, 70, 120], words: ['sixty', 'seventy', 'many'] } });
  const plot = { bbox: { width: 0 }, width: 600 };
  expect(call(axes[0].splits, plot, 0, 60, 120)).toEqual([60, 120]);
  expect(call(axes[0].values, plot, [60, 120])).toEqual(['sixty', 'many']);
});

it('has clock ticks on an axis of moments', () => {
  const from = Date.parse('2026-11-20T10:00:00Z');
  const { axes = [], scales = {} } = optionsOf({ x: { from, to: from + 600_000 } });
  expect(scales.x.time).toBe(true);
  expect(call(axes[0].values, undefined, [from], 0, 0, 60_000)).toEqual(['10:00']);
  expect(call(axes[0].values, undefined, [from], 0, 0, 10_000)).toEqual(['10:00:00']);
});

it('draws lines in their style, and a value between two gaps as a dot', () => {
  const lines = [line('a'), line('b', 'dashed'), line('c', 'rings'), line('d', 'dotted')];
  const [, solid, dashed, rings, dotted] = optionsOf({ lines }).series;
  expect([solid.dash, dashed.dash, dotted.dash]).toEqual([undefined, [6, 5], [0, 6]]);
  expect(rings.points?.fill).not.toBe(rings.points?.stroke);
  const data = [
    [1, 2, 3, 4, 5],
    [5, null, 6, undefined, 7],
  ];
  expect(call(solid.points?.filter, { data }, 1)).toEqual([0]);
});

it('shares its crosshair with its group', () => {
  expect(optionsOf({}).cursor?.sync).toEqual({ key: 'all', scales: ['x', null] });
});
