import type { KeyboardEvent, PropsWithChildren } from 'react';
import { cx } from '@emotion/css';

import { useDiagramStyles } from './styles';

/** A position in a drawing, in units of its view box. */
export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** The emphasis of a part: ordinary, highlighted, or absent. */
type Tone = 'plain' | 'accent' | 'absent';

interface BoxProps {
  rect: Rect;
  title?: string;
  tone?: Tone;
}

/** A part of a drawing. Its content is placed from its upper left corner. */
export function Box({ rect, title, tone = 'plain', children }: PropsWithChildren<BoxProps>) {
  const styles = useDiagramStyles();
  return (
    <g transform={`translate(${rect.x} ${rect.y})`} className={cx(tone === 'absent' && styles.muted)}>
      <Content rect={rect} title={title} tone={tone}>
        {children}
      </Content>
    </g>
  );
}

interface ButtonBoxProps extends BoxProps {
  /** Its accessible name, where its text is not enough. */
  label?: string;
  selected: boolean;
  onSelect(): void;
}

/** A part that can be chosen by mouse or keyboard. Its text is its name. */
export function ButtonBox(props: PropsWithChildren<ButtonBoxProps>) {
  const { rect, title, tone, label, selected, onSelect, children } = props;
  const styles = useDiagramStyles();
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault(); // the space bar would scroll the page
      onSelect();
    }
  };
  return (
    <g
      role="button"
      tabIndex={0}
      aria-label={label}
      aria-pressed={selected}
      transform={`translate(${rect.x} ${rect.y})`}
      className={cx(styles.button, tone === 'absent' && styles.muted, selected && styles.selected)}
      onClick={onSelect}
      onKeyDown={onKeyDown}
    >
      <Content rect={rect} title={title} tone={tone}>
        {children}
      </Content>
    </g>
  );
}

function Content({ rect: { width, height }, title, tone = 'plain', children }: PropsWithChildren<BoxProps>) {
  const styles = useDiagramStyles();
  return (
    <>
      <rect className={styles[tone]} width={width} height={height} rx={6} />
      {title && (
        <text className={styles.title} x={12} y={26}>
          {title}
        </text>
      )}
      {children}
    </>
  );
}

interface WordsProps {
  x: number;
  y: number;
  size?: 'title' | 'value' | 'small';
  anchor?: 'start' | 'middle' | 'end';
  children: string;
}

/** A line of text in a drawing. */
export function Words({ x, y, size = 'small', anchor = 'start', children }: WordsProps) {
  const styles = useDiagramStyles();
  return (
    <text className={styles[size]} x={x} y={y} textAnchor={anchor}>
      {children}
    </text>
  );
}
