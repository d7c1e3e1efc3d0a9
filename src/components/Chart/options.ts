import type { GrafanaTheme2 } from '@grafana/data';
import { clock } from '../../lib/time';
import {
  AxisPlacement,
  DrawStyle,
  PointVisibility,
  ScaleDirection,
  ScaleOrientation,
  UPlotConfigBuilder,
} from '@grafana/ui';
import type { LineStyle } from '@grafana/schema';

import { apart } from './axis';
import { drawBehind, drawInFront, type Plot } from './draw';
import { lineColor } from './tones';
import type { ChartLine, Look } from './types';
import { isSpan, levelText, objectiveText, type View } from './view';

/** The properties of a chart whose change requires a new plot. */
export interface Shape {
  isTime: boolean;
  lines: Array<Pick<ChartLine, 'key' | 'tone' | 'look' | 'dots' | 'color'>>;
  /** The number of lines of the labels below the axis. */
  wordLines: number;
}

export function shapeOf({ x, lines }: View): Shape {
  const words = isSpan(x) ? [] : (x.words ?? []);
  return {
    isTime: isSpan(x),
    lines: lines.map(({ key, tone, look, dots, color }) => ({ key, tone, look, dots, color })),
    wordLines: Math.max(1, ...words.map((word) => word.split('\n').length)),
  };
}

interface Options {
  shape: Shape;
  /** Returns the current view at the time of the call. */
  view(): View;
  theme: GrafanaTheme2;
  /** The font size, in pixels. */
  font: number;
  /** Charts of one group have one crosshair. */
  group: string;
}

/** Builds the configuration of a chart's plot. What changes while it is shown comes from its view. */
export function configOf({ shape, view, theme, font, group }: Options): UPlotConfigBuilder {
  const config = new UPlotConfigBuilder();
  addScales(config, shape, view);
  addAxes(config, shape, view, theme, font);
  shape.lines.forEach((line) => addLine(config, line, theme, font));
  const above = () => (view().marks?.length || shape.wordLines > 1 ? 1.6 : 0.6) * font;
  config.setPadding([above, (plot) => 0.3 * besideOf(view(), plot, font) * font, 0, 0]);
  config.setCursor({ sync: { key: group, scales: ['x', null] }, points: { width: 2 } });
  config.addHook('drawClear', (plot: Plot) => drawBehind(plot, view(), theme, font));
  config.addHook('draw', (plot: Plot) => drawInFront(plot, view(), theme, font));
  return withSizes(config, shape, theme, font);
}

/** The letters beside the plot, by halves: the value of the objective, or half of the label at the end of the axis. */
function besideOf(view: View, plot: Plot, font: number): number {
  const { slo, format } = view;
  const value = slo === undefined ? '' : objectiveText(slo, format).replace(/^\S+ /, '');
  return Math.max(lastWord(view, plot, font).length, 2 * value.length + 1);
}

/** The label at the end of the axis, half of which extends beyond it. */
function lastWord({ x, shown: [from, to] }: View, { width }: Plot, font: number): string {
  if (isSpan(x)) {
    return (to - from) * tickSpace(font) < MINUTE * width ? '00:00:00' : '00:00';
  }
  const word = levelText(x, x.levels[x.levels.length - 1]);
  return word.split('\n').reduce((a, b) => (a.length < b.length ? b : a));
}

/** The least distance of two ticks of a clock, in pixels. */
const tickSpace = (font: number) => 4.6 * font;

const MINUTE = 60_000;

function addScales(config: UPlotConfigBuilder, { isTime }: Shape, view: () => View) {
  const range = (scaleKey: string) => (): [number, number] => {
    const { shown, y } = view();
    return scaleKey === 'x' ? shown : [y.min, y.max];
  };
  config.addScale({
    scaleKey: 'x',
    isTime,
    auto: true,
    orientation: ScaleOrientation.Horizontal,
    direction: ScaleDirection.Right,
    range: range('x'),
  });
  config.addScale({
    scaleKey: 'y',
    auto: true,
    orientation: ScaleOrientation.Vertical,
    direction: ScaleDirection.Up,
    range: range('y'),
  });
}

/** The steps between ticks of a clock, in milliseconds. */
const CLOCK = [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600].map((seconds) => 1000 * seconds);

function addAxes(config: UPlotConfigBuilder, { isTime }: Shape, view: () => View, theme: GrafanaTheme2, font: number) {
  const color = theme.colors.text.secondary;
  const place = (at: number, increment: number) =>
    isTime ? clock(at, increment < MINUTE ? 'second' : 'minute') : levelText(view().x, at);
  config.addAxis({
    scaleKey: 'x',
    theme,
    color,
    placement: AxisPlacement.Bottom,
    grid: { show: isTime },
    incrs: isTime ? CLOCK : undefined,
    splits: isTime ? undefined : (plot, _, from, to) => levelTicks(plot, view(), font, from, to),
    values: (_, splits, __, ___, increment) => splits.map((at) => place(at, increment)),
  });
  config.addAxis({
    scaleKey: 'y',
    theme,
    color,
    placement: AxisPlacement.Left,
    grid: { show: true },
    splits: () => view().y.ticks.map(({ at }) => at),
    values: () => view().y.ticks.map(({ text }) => text),
  });
}

/** Returns the visible levels whose labels fit. */
function levelTicks(plot: Plot, { x }: View, font: number, from: number, to: number): number[] {
  if (isSpan(x)) {
    return [];
  }
  const words = x.words ?? x.levels.map(String);
  const width =
    (0.55 * Math.max(...words.flatMap((word) => word.split('\n')).map(({ length }) => length)) + 0.8) * font;
  const room = (plot.bbox.width || plot.width) / window.devicePixelRatio;
  const levels = x.levels.filter((level) => level >= from && level <= to);
  return apart(levels, ((to - from) * width) / Math.max(room, 1));
}

const drawStyles = {
  solid: DrawStyle.Line,
  dashed: DrawStyle.Line,
  dotted: DrawStyle.Line,
  rings: DrawStyle.Points,
  bars: DrawStyle.Bars,
};

const lineStyles: Partial<Record<Look, LineStyle>> = {
  dashed: { fill: 'dash', dash: [6, 5] },
  dotted: { fill: 'dot', dash: [0, 6] },
};

function addLine(config: UPlotConfigBuilder, line: Shape['lines'][number], theme: GrafanaTheme2, font: number) {
  const { look = 'solid', dots } = line;
  const color = lineColor(theme, line);
  config.addSeries({
    scaleKey: 'y',
    theme,
    drawStyle: drawStyles[look],
    lineColor: color,
    lineWidth: look === 'bars' ? 0 : Math.max(2, 0.16 * font),
    lineStyle: lineStyles[look],
    fillColor: look === 'bars' ? color : undefined,
    barWidthFactor: 0.6,
    barMaxWidth: 4 * font,
    showPoints: dots ? PointVisibility.Always : PointVisibility.Never,
    pointSize: Math.max(6, 0.5 * font),
    pointsFilter: dots || look === 'rings' || look === 'bars' ? undefined : alone,
  });
}

/** Returns the values between two gaps, which no line shows. */
function alone({ data }: Plot, series: number): number[] {
  const column = data[series];
  const has = (i: number) => column[i] !== null && column[i] !== undefined;
  const near = (i: number, step: 1 | -1) => {
    let at = i + step;
    while (at in column && column[at] === undefined) {
      at += step;
    }
    return has(at);
  };
  return Array.from(column.keys()).filter((i) => has(i) && !near(i, -1) && !near(i, 1));
}

/** Scales the one font size of Grafana's builder, because the stage view's is larger. */
function withSizes(config: UPlotConfigBuilder, { lines, wordLines }: Shape, theme: GrafanaTheme2, font: number) {
  const build = config.getConfig.bind(config);
  config.getConfig = () => {
    const built = build();
    // uPlot scales only whole pixels where a screen has several for one.
    const letters = `${Math.round(font)}px ${theme.typography.fontFamily}`;
    built.axes?.forEach((axis) => {
      axis.font = letters;
      axis.size =
        axis.scale === 'x' ? 9 + font * (1 + 1.5 * (wordLines - 1)) : (plot, words) => yAxisSize(plot, words, letters);
      if (axis.scale === 'x') {
        axis.space = tickSpace(font);
      }
    });
    lines.forEach(({ look }, i) => {
      const { points } = built.series[i + 1];
      if (look === 'rings' && points) {
        points.fill = theme.colors.background.primary;
      }
    });
    return built;
  };
  return config;
}

/** The room for the labels beside the axis. */
function yAxisSize({ ctx }: Plot, words: string[] | null, letters: string): number {
  ctx.save();
  ctx.font = letters;
  const width = Math.max(0, ...(words ?? []).map((word) => ctx.measureText(word).width));
  ctx.restore();
  return Math.ceil(width) + 10;
}
