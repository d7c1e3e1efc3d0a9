import { memo, useEffect, useLayoutEffect, useMemo, useRef } from 'react';

import { stylesOf } from '../../lib/styles';
import { lights, NO_CHASE, placeMarks, step, STEP, type Light, type Load } from './chaser';
import type { Layout, Point } from './layout';

interface TrafficProps extends Load {
  layout: Layout;
}

/**
 * Requests in flight: a sample, not each of them. Each lights the marks on its path one after the other. React renders
 * the marks once. One timer sets the lights directly, because a CSS animation would cost a frame sixty times a second.
 */
export function Traffic({ layout, requestsPerSecond, shares }: TrafficProps) {
  const group = useRef<SVGGElement>(null);
  const load = useRef<Load>({ requestsPerSecond, shares });
  const { points, ways } = useMemo(() => placeMarks(layout), [layout]);
  useEffect(() => {
    load.current = { requestsPerSecond, shares };
  });
  // A layout effect, so that no step runs on marks of another layout.
  useLayoutEffect(() => {
    const marks = group.current?.children ?? [];
    let chase = NO_CHASE;
    let lit = new Map<number, Light>();
    const stop = whileVisible(() => {
      chase = step(chase, load.current, ways);
      const next = lights(chase, ways);
      lit.forEach((_, i) => next.has(i) || marks[i].removeAttribute(LIGHT));
      next.forEach((light, i) => lit.get(i) === light || marks[i].setAttribute(LIGHT, light));
      lit = next;
    });
    return () => {
      stop();
      lit.forEach((_, i) => marks[i]?.removeAttribute(LIGHT));
    };
  }, [ways]);
  return (
    <g ref={group} aria-hidden="true" data-testid="traffic">
      <Marks points={points} />
    </g>
  );
}

const LIGHT = 'data-light';

const Marks = memo(function Marks({ points }: { points: Point[] }) {
  const styles = useStyles();
  return points.map(({ x, y }, i) => <circle key={i} className={styles.mark} cx={x} cy={y} r={4.5} />);
});

/** Repeats a step, except while the page is hidden. Returns a function that stops it. */
function whileVisible(take: () => void): () => void {
  let timer: number | undefined;
  const follow = () => {
    window.clearInterval(timer);
    timer = document.hidden ? undefined : window.setInterval(take, STEP);
  };
  follow();
  document.addEventListener('visibilitychange', follow);
  return () => {
    window.clearInterval(timer);
    document.removeEventListener('visibilitychange', follow);
  };
}

const useStyles = stylesOf(({ colors }) => ({
  mark: {
    fill: colors.background.primary,
    stroke: colors.border.strong,
    strokeWidth: 1.5,
    [`&[${LIGHT}]`]: { fill: colors.primary.text, stroke: colors.primary.text },
    [`&[${LIGHT}="head"]`]: { strokeWidth: 5 },
    [`&[${LIGHT}="tail"]`]: { opacity: 0.5 },
  },
}));
