import { useId, type PropsWithChildren } from 'react';
import { cx } from '@emotion/css';

import { useDiagramStyles } from './styles';

interface DiagramProps {
  label: string;
  /** The size of the view box, which scales to the available width. */
  width: number;
  height: number;
  /** The least width in pixels at which its text is legible. Below it, the drawing scrolls. */
  minWidth?: number;
  /** Whether it is a picture, or has parts to choose. */
  picture?: boolean;
}

/** The margin for outlines of parts at the edge. */
const EDGE = 3;

/** The frame of a drawing. */
export function Diagram({ label, width, height, minWidth, picture, children }: PropsWithChildren<DiagramProps>) {
  const styles = useDiagramStyles();
  const drawing = (
    <svg
      className={styles.svg}
      style={{ minWidth }}
      viewBox={`${-EDGE} ${-EDGE} ${width + 2 * EDGE} ${height + 2 * EDGE}`}
      role={picture ? 'img' : 'group'}
      aria-label={label}
    >
      {children}
    </svg>
  );
  if (minWidth === undefined) {
    return drawing;
  }
  return (
    // It is scrollable by keyboard.
    <div className={styles.scroll} tabIndex={0} role="group" aria-label={`${label}, scrolls horizontally`}>
      {drawing}
    </div>
  );
}

/** The style of a line. */
export type LineKind = 'solid' | 'dashed' | 'dotted' | 'faint';

interface ArrowProps {
  /** The path's data, in the view box's units. */
  path: string;
  kind?: LineKind;
  /** Whether it has an arrow head. */
  plain?: boolean;
}

/** A line from one part to another, with a head at its end. */
export function Arrow({ path, kind = 'solid', plain }: ArrowProps) {
  const styles = useDiagramStyles();
  const id = useId();
  return (
    <>
      {!plain && (
        <marker
          id={id}
          viewBox="0 0 10 10"
          refX="9"
          refY="5"
          markerWidth="5"
          markerHeight="5"
          orient="auto-start-reverse"
        >
          <path className={styles.head} d="M 0 0 L 10 5 L 0 10 z" />
        </marker>
      )}
      <path className={cx(styles[kind])} d={path} markerEnd={plain ? undefined : `url(#${id})`} />
    </>
  );
}
