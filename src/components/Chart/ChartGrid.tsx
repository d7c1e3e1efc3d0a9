import type { PropsWithChildren, ReactNode } from 'react';

import { stylesOf, WALL, WRAP } from '../../lib/styles';
import { GroupContext, useOwnGroup } from './group';
import { LineSign } from './LineSign';
import type { Look, Tone } from './types';

/** The entry of a legend. */
export interface LegendItem {
  key: string;
  tone?: Tone;
  look?: Look;
  /** A sign in place of a line. */
  sign?: string;
  words: ReactNode;
}

interface ChartGridProps {
  legend: LegendItem[];
  /** The least width of a chart, in pixels. */
  least: number;
  /** The most charts in a row. */
  most?: number;
  /** Whether the charts of an incomplete last row keep the width of the others. */
  stretched?: boolean;
  /** A {@link ChartFigure} for each. */
  children: ReactNode;
}

/** Charts that share the crosshair and the zoom. */
export function ChartGroup({ children }: PropsWithChildren) {
  return <GroupContext.Provider value={useOwnGroup()}>{children}</GroupContext.Provider>;
}

/** A group of charts in as many columns as fit, below a common legend. */
export function ChartGrid({ legend, least, most = 4, stretched, children }: ChartGridProps) {
  const styles = useStyles();
  const fill = stretched ? 'auto-fit' : 'auto-fill';
  const width = `min(max(${least}px, ${100 / (most + 1) + 1}%), 100%)`;
  return (
    <ChartGroup>
      <ul className={styles.legend} aria-label="Lines">
        {legend.map(({ key, tone, look, sign, words }) => (
          <li key={key}>
            {sign ? <span aria-hidden="true">{sign}</span> : <LineSign tone={tone} look={look} />} {words}
          </li>
        ))}
      </ul>
      <div className={styles.charts} style={{ gridTemplateColumns: `repeat(${fill}, minmax(${width}, 1fr))` }}>
        {children}
      </div>
    </ChartGroup>
  );
}

interface ChartFigureProps {
  caption: ReactNode;
  /** The id of the caption, which names the figure. */
  id?: string;
  children: ReactNode;
}

/** A chart with its caption. */
export function ChartFigure({ caption, id, children }: ChartFigureProps) {
  const styles = useStyles();
  return (
    <figure className={styles.figure} aria-labelledby={id}>
      <figcaption id={id}>{caption}</figcaption>
      <div className={styles.plot}>{children}</div>
    </figure>
  );
}

const useStyles = stylesOf((theme) => ({
  legend: {
    ...WRAP,
    gap: theme.spacing(0, 2),
    margin: theme.spacing(0, 0, 1),
    padding: 0,
    listStyle: 'none',
  },
  charts: { display: 'grid', gap: theme.spacing(2) },
  figure: {
    margin: 0,
    minWidth: 0,
    breakInside: 'avoid',
    '& figcaption': { fontWeight: theme.typography.fontWeightMedium },
    '& figcaption i': { fontWeight: theme.typography.fontWeightRegular, color: theme.colors.text.secondary },
  },
  plot: { height: '15rem', fontSize: theme.typography.bodySmall.fontSize, [WALL]: { height: '20rem' } },
}));
