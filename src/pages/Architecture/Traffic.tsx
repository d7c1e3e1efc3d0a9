import React, { memo, useMemo } from 'react';
import { css, cx, keyframes } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Waypoint } from './layout';
import { dots, TRAVEL, type Dots } from './flow';

interface TrafficProps {
  /** The way to each worker. */
  ways: Waypoint[][];
  requestsPerSecond: number;
  /** Of each worker, in the same order. */
  shares: number[];
}

/** Requests under way: a sample, not each of them. */
export function Traffic({ ways, requestsPerSecond, shares }: TrafficProps) {
  const all = dots(requestsPerSecond, shares);
  return (
    <g aria-hidden="true" data-testid="traffic">
      {all.map(({ count, period }, i) => count > 0 && <Way key={i} way={ways[i]} count={count} period={period} />)}
    </g>
  );
}

interface WayProps extends Dots {
  way: Waypoint[];
}

/** The dots to one worker. They start anew only when their number or pace changes. */
const Way = memo(
  function Way({ way, count, period }: WayProps) {
    const styles = useStyles2(getStyles);
    const travel = useMemo(() => css({ animationName: frames(way, TRAVEL / period) }), [way, period]);
    const shift = (way[way.length - 1].y % 97) / 97; // not to all workers at the same moment
    return (
      <>
        {Array.from({ length: count }, (_, i) => (
          <circle
            key={`${i}/${period}`}
            r={7}
            className={cx(styles.dot, travel)}
            style={{ animationDuration: `${period}s`, animationDelay: `${((i + shift) * period) / count - period}s` }}
          />
        ))}
      </>
    );
  },
  (a, b) => a.count === b.count && a.period === b.period && JSON.stringify(a.way) === JSON.stringify(b.way)
);

/**
 * A dot travels in this share of its period, and cannot be seen in the rest. Only
 * what a browser moves without drawing anew: transform and opacity.
 */
function frames(way: Waypoint[], share: number): string {
  const place = ({ x, y }: Waypoint) => ({ transform: `translate(${x}px, ${y}px)` });
  const points = way.map((p) => [`${p.at * share * 100}%`, { ...place(p), opacity: 1 }] as const);
  const gone = { ...place(way[way.length - 1]), opacity: 0 };
  const rest = share < 1 ? { [`${share * 100 + 0.01}%`]: gone, '100%': gone } : {};
  return keyframes({ ...Object.fromEntries(points), ...rest });
}

const getStyles = (theme: GrafanaTheme2) => ({
  dot: css({
    fill: theme.colors.primary.text,
    willChange: 'transform',
    animationIterationCount: 'infinite',
    animationTimingFunction: 'linear',
    '@media (prefers-reduced-motion: reduce)': { display: 'none' },
  }),
});
