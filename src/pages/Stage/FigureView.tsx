import type { ReactNode } from 'react';

import type { HistoryPoint } from '../../client';
import { Chart } from '../../components/Chart';
import { COLUMN, LOW, NARROW, PLAIN_LIST, PROPORTIONAL, stylesOf, verdicts } from '../../lib/styles';
import type { Figure } from './figures';
import { ceilingOf, changesOf, formats, linesOf, spanOf, type Value } from './history';
import { LargeValue } from './LargeValue';
import type { Reference } from './references';

interface FigureViewProps {
  figure: Figure;
  /** The explanation of the name. */
  meaning: string;
  /** The curve below the figure. */
  value: Value;
  references: Reference[];
  points: HistoryPoint[];
  /** The load generator's clock at the last snapshot, in milliseconds since 1970; undefined until it is known. */
  now?: number;
  /** The objective in seconds, where the figure has one. */
  slo?: number;
  isLive: boolean;
  /** What a trial shows in place of the step's figure. */
  arms?: { name: string; list: ReactNode };
}

/** One large figure of the step, its recorded values, and its last ten minutes, each point over the 60 s before it. */
export function FigureView(props: FigureViewProps) {
  const styles = useStyles();
  const { figure, meaning, value, references, points, now, slo, isLive, arms } = props;
  const { name } = figure;
  return (
    <section className={styles.part} aria-label={name}>
      <h2>
        {arms?.name ?? name}{' '}
        <small>
          {meaning}, {arms ? `in this trial; curve: ${name}` : 'in this step; curve'} over 60 s
        </small>
      </h2>
      {arms?.list ?? (
        <>
          <LargeValue figure={figure} isLive={isLive} testId={name} className={styles.value} />
          <ul className={styles.references} aria-label={`${name} of the baseline`}>
            {references.map((reference) => (
              <ReferenceLine key={reference.of} reference={reference} isLive={isLive} />
            ))}
          </ul>
        </>
      )}
      {now !== undefined && (
        <div className={styles.curve} data-name={name}>
          <Chart
            label={`${name} of the last ten minutes`}
            x={spanOf(points, now)}
            lines={linesOf(points, value)}
            marks={changesOf(points)}
            format={formats[value]}
            slo={slo}
            ceiling={ceilingOf(points, value)}
          />
        </div>
      )}
    </section>
  );
}

function ReferenceLine({ reference: { of, text, difference }, isLive }: { reference: Reference; isLive: boolean }) {
  const styles = useStyles();
  const kind = isLive ? difference?.kind : 'same';
  return (
    <li>
      <span className={styles.of}>{of}</span> <span>{text}</span>{' '}
      <b className={kind && styles[kind]}>{difference?.text}</b>
    </li>
  );
}

const useStyles = stylesOf((theme) => {
  const { text, background } = theme.colors;
  return {
    part: {
      ...COLUMN,
      flex: '1 1 34em',
      minWidth: 0,
      minHeight: 0,
      padding: '0.6em 1.4em',
      borderRadius: '0.5em',
      background: background.primary,
      fontVariantNumeric: 'tabular-nums',
      '& h2': { fontSize: '2em', lineHeight: 1.2, margin: 0 },
      '& h2 small': { fontSize: '0.75em', fontWeight: 'normal', color: text.secondary },
      // On a phone, both figures are above both curves.
      [NARROW]: {
        display: 'contents',
        '& > *': { order: 1 },
        '& > h2': { order: 0, fontSize: '1.5em' },
        '& > h2 small': { display: 'none' },
      },
      [LOW]: { flexBasis: 0, padding: '0.2em 1em' },
    },
    value: { fontSize: '7.5em', [NARROW]: { fontSize: '4em' }, [LOW]: { fontSize: '4em' } },
    references: {
      display: 'grid',
      gridTemplateColumns: 'repeat(auto-fit, minmax(min(15em, 100%), 1fr))',
      gap: '0 1.5em',
      ...PLAIN_LIST,
      fontSize: '1.35em',
      lineHeight: 1.3,
      minHeight: '2.6em',
      '& b': { display: 'block', fontWeight: theme.typography.fontWeightMedium },
      [NARROW]: { '&&': { order: 2 } },
      [LOW]: { display: 'none' },
    },
    of: { color: text.secondary, ...PROPORTIONAL },
    curve: {
      flex: '1 1 0',
      minHeight: '4.8em',
      fontSize: '1.3em',
      [NARROW]: {
        '&&': { order: 3 },
        gridColumn: '1 / -1',
        height: '11em',
        '&::before': { content: 'attr(data-name) ", last 60 s"', color: text.secondary },
      },
      [LOW]: { display: 'none' },
    },
    ...verdicts(theme),
  };
});
