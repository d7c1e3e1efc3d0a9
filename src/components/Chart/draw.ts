import type { ComponentProps } from 'react';

import { colorManipulator, type GrafanaTheme2 } from '@grafana/data';
import type { UPlotChart } from '@grafana/ui';

import { valueWithUnit } from '../../lib/format';
import { lineColor, toneColor } from './tones';
import { isSpan, objectiveText, runsAbove, type View } from './view';

/** The uPlot instance below a chart of Grafana. */
export type Plot = Parameters<NonNullable<ComponentProps<typeof UPlotChart>['plotRef']>>[0];

/** The arguments of a drawing hook. All lengths are pixels of the canvas. */
interface Pen {
  plot: Plot;
  ctx: CanvasRenderingContext2D;
  view: View;
  theme: GrafanaTheme2;
  /** The size of a CSS pixel. */
  px: number;
  font: number;
}

/** Draws the background: the shaded range and the bands. */
export function drawBehind(plot: Plot, view: View, theme: GrafanaTheme2, font: number) {
  drawEach([drawField, drawBands], plot, view, theme, font);
}

/** Draws the foreground: the objective, the marks, the values of bars, and where a line leaves the plot. */
export function drawInFront(plot: Plot, view: View, theme: GrafanaTheme2, font: number) {
  drawEach([drawObjective, drawMarks, drawValues, drawCuts], plot, view, theme, font);
}

/** Clips drawing to the plot and the area above it, which has the labels of marks. */
function drawEach(draws: Array<(pen: Pen) => void>, plot: Plot, view: View, theme: GrafanaTheme2, font: number) {
  const { ctx, bbox } = plot;
  const px = window.devicePixelRatio;
  for (const draw of draws) {
    ctx.save();
    ctx.beginPath();
    const beside = draw === drawObjective ? ctx.canvas.width : 2 * px;
    ctx.rect(bbox.left - px, 0, bbox.width + beside, bbox.top + bbox.height);
    ctx.clip();
    draw({ plot, ctx, view, theme, px, font: font * px });
    ctx.restore();
  }
}

function drawField({ plot, ctx, view: { field }, theme }: Pen) {
  if (field) {
    const [low, high] = field.map((value) => plot.valToPos(value, 'y', true));
    ctx.fillStyle = theme.colors.action.selected;
    ctx.fillRect(plot.bbox.left, high, plot.bbox.width, low - high);
  }
}

/** Fills the area between the least and the largest values, with a vertical line at each position. */
function drawBands({ plot, ctx, view: { bands = [], y }, theme, px }: Pen) {
  for (const { tone, points } of bands) {
    const corners = points.map(([x, low, high]) => ({
      x: plot.valToPos(x, 'x', true),
      low: plot.valToPos(Math.max(low, y.min), 'y', true),
      high: plot.valToPos(Math.min(high, y.max), 'y', true),
    }));
    const color = toneColor(theme, tone);
    ctx.fillStyle = colorManipulator.alpha(color, 0.18);
    ctx.beginPath();
    corners.forEach(({ x, high }) => ctx.lineTo(x, high));
    [...corners].reverse().forEach(({ x, low }) => ctx.lineTo(x, low));
    ctx.fill();
    ctx.strokeStyle = colorManipulator.alpha(color, 0.5);
    ctx.lineWidth = 2 * px;
    ctx.beginPath();
    for (const { x, low, high } of corners) {
      ctx.moveTo(x, low);
      ctx.lineTo(x, high);
    }
    ctx.stroke();
  }
}

/** Draws a dashed line at the objective, with its value beside its end, where no line is. */
function drawObjective({ plot, ctx, view: { slo, y, format }, theme, px, font }: Pen) {
  if (slo === undefined || slo > y.max) {
    return;
  }
  const at = plot.valToPos(slo, 'y', true);
  const right = plot.bbox.left + plot.bbox.width;
  ctx.strokeStyle = theme.colors.error.text;
  ctx.lineWidth = 2 * px;
  ctx.setLineDash([8 * px, 6 * px]);
  ctx.beginPath();
  ctx.moveTo(plot.bbox.left, at);
  ctx.lineTo(right, at);
  ctx.stroke();
  const [name, ...value] = objectiveText(slo, format).split(' ');
  const words: Words = { align: 'left', color: theme.colors.error.text };
  write({ ctx, theme, font }, name, right + 4 * px, at, words);
  write({ ctx, theme, font }, value.join(' '), right + 4 * px, at + font, words);
}

/** Draws a vertical line at each mark. Where labels would overlap, only the last one is drawn. */
function drawMarks({ plot, ctx, view: { marks = [] }, theme, px, font }: Pen) {
  const { left, top, width, height } = plot.bbox;
  let free = left + width; // the start of the label to the right
  for (const { at, text, tone } of [...marks].reverse()) {
    const x = plot.valToPos(at, 'x', true);
    const color = tone ? toneColor(theme, tone) : theme.colors.text.primary;
    ctx.strokeStyle = color;
    ctx.lineWidth = 2 * px;
    ctx.setLineDash([4 * px, 4 * px]);
    ctx.beginPath();
    ctx.moveTo(x, top - font);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    ctx.font = letters(theme, font);
    const room = ctx.measureText(text).width + 10 * px;
    const isLate = free === left + width && x + room > free;
    if (isLate || x + room <= free) {
      write({ ctx, theme, font }, text, x + (isLate ? -5 : 5) * px, top - 3 * px, {
        align: isLate ? 'right' : 'left',
        color,
      });
      free = isLate ? x - room : x;
    }
  }
}

/** Draws the value of each bar above it, and each sign below its value. */
function drawValues({ plot, ctx, view: { lines, signs = [], format }, theme, px, font }: Pen) {
  const words: Words = { align: 'center', color: theme.colors.text.primary };
  for (const { points, look } of lines) {
    for (const [x, y] of look === 'bars' ? points : []) {
      if (y !== undefined) {
        const [left, top] = [plot.valToPos(x, 'x', true), plot.valToPos(y, 'y', true)];
        write({ ctx, theme, font }, valueWithUnit(y, format), left, top - 4 * px, words);
      }
    }
  }
  const bottom = plot.bbox.top + plot.bbox.height;
  for (const { at, text } of signs) {
    const low = plot.valToPos(at[1], 'y', true) + 1.5 * font;
    write({ ctx, theme, font }, text, plot.valToPos(at[0], 'x', true), Math.min(low, bottom), words);
  }
}

/** Draws a triangle at the upper edge above each part of a line that is higher than the axis. */
function drawCuts({ plot, ctx, view: { lines, x, y }, theme, font }: Pen) {
  const { top } = plot.bbox;
  const half = 0.4 * font;
  for (const line of isSpan(x) ? lines : []) {
    ctx.fillStyle = lineColor(theme, line);
    for (const [from, to] of runsAbove(line.points, y.max)) {
      const middle = (plot.valToPos(from, 'x', true) + plot.valToPos(to, 'x', true)) / 2;
      ctx.beginPath();
      ctx.moveTo(middle, top);
      ctx.lineTo(middle - half, top + 1.5 * half);
      ctx.lineTo(middle + half, top + 1.5 * half);
      ctx.fill();
    }
  }
}

const letters = (theme: GrafanaTheme2, font: number) => `${font}px ${theme.typography.fontFamily}`;

interface Words {
  align: CanvasTextAlign;
  color: string;
}

/** Draws text with its lower edge at a position, and an outline that separates it from the background. */
function write(
  { ctx, theme, font }: Pick<Pen, 'ctx' | 'theme' | 'font'>,
  text: string,
  x: number,
  y: number,
  { align, color }: Words
) {
  ctx.font = letters(theme, font);
  ctx.textAlign = align;
  ctx.textBaseline = 'bottom';
  ctx.setLineDash([]);
  ctx.lineWidth = font / 4;
  ctx.lineJoin = 'round';
  ctx.strokeStyle = theme.colors.background.primary;
  ctx.strokeText(text, x, y);
  ctx.fillStyle = color;
  ctx.fillText(text, x, y);
}
