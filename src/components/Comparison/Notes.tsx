import type { PropsWithChildren, ReactNode } from 'react';
import { cx } from '@emotion/css';

import type { Settings } from '../../client';
import { objective, span } from '../../lib/format';
import { PLAIN_LIST, stylesOf, WRAP } from '../../lib/styles';
import { sloMarks } from './SLO';
import { tagMeanings, type Model } from './model';

/** A list of explanations of a table's terms and marks; its children are the items. */
export function Notes({ label, children }: PropsWithChildren<{ label?: string }>) {
  const styles = useStyles();
  return (
    <ul className={styles.notes} aria-label={label}>
      {children}
    </ul>
  );
}

interface OneLineProps {
  /** The parts of the line. */
  summary: ReactNode[];
  className?: string;
}

/** A line that is cut off at its end. Opened, it is whole, above its children. */
export function OneLine({ summary, className, children }: PropsWithChildren<OneLineProps>) {
  const styles = useStyles();
  return (
    <details className={cx(styles.line, className)}>
      <summary>{summary.map((part, i) => part && <span key={i}>{part}</span>)}</summary>
      {children}
    </details>
  );
}

/** States the SLOs. */
export function sloText({ ttft, tpot }: Settings['slo']): string {
  return `SLO: TTFT p95 ≤ ${objective(ttft)}, TPOT p95 ≤ ${objective(tpot)}`;
}

/** The items that explain the marks of the SLOs. */
export function SLONotes() {
  return (
    <>
      {Object.values(sloMarks).map(({ sign, words }) => (
        <li key={sign}>
          <b>{sign}</b> {words}
        </li>
      ))}
    </>
  );
}

interface LegendProps {
  model: Model;
  slo: Settings['slo'];
  settling: boolean;
  /** The time range of the live figures; 0 without any. */
  seconds: number;
}

/** States the span of the live figures and the SLOs; opened, it explains the columns, and the tags in use. */
export function Legend({ model, slo, settling, seconds }: LegendProps) {
  const isOpen = [...model.latencies.rows, ...model.rates.rows].some(({ cells }) =>
    cells.some(({ difference }) => difference?.verdict.includes('not certain'))
  );
  return (
    <OneLine
      summary={[
        seconds > 0 && (
          <>
            <b>Live</b>: the last {span(seconds)} of this step, an hour at most
          </>
        ),
        sloText(slo),
        'Legend',
      ]}
    >
      <Notes label="Legend">
        {settling && (
          <li>
            <b>Settling</b>: live figures cover this step so far; the comparison starts after 60 s of it.
          </li>
        )}
        {model.sources.map(({ short, text }) => (
          <li key={short}>
            <b>{short}</b>: {text}
          </li>
        ))}
        {model.sources.length > 0 && !settling && (
          <li>
            Differences: live less this column; <i>better</i> or <i>worse</i> where the 95 % interval leaves out 0. The
            spread of recorded values is <i>estimated</i>.
          </li>
        )}
        {isOpen && (
          <li>
            <i>not certain</i>: chance could explain it; the time is what it takes if the difference stays what it is
          </li>
        )}
        {model.tags.map((tag) => (
          <li key={tag}>
            <i>{tag}</i>: {tagMeanings[tag]}
          </li>
        ))}
        <SLONotes />
      </Notes>
    </OneLine>
  );
}

const useStyles = stylesOf((theme) => ({
  line: {
    ...theme.typography.bodySmall,
    minWidth: 0,
    color: theme.colors.text.secondary,
    '& > summary': { padding: theme.spacing(0.5, 0), cursor: 'pointer' },
    [theme.breakpoints.up('lg')]: {
      '&:not([open]) > summary': { overflow: 'hidden', textOverflow: 'ellipsis', whiteSpace: 'nowrap' },
    },
    '& > summary > span + span::before': { content: '" · "' },
    '& > summary:focus-visible': { outline: `2px solid ${theme.colors.primary.border}`, outlineOffset: 2 },
    '@media print': { '&::details-content': { contentVisibility: 'visible', display: 'block' } },
  },
  notes: {
    ...WRAP,
    gap: theme.spacing(0, 2),
    ...PLAIN_LIST,
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
  },
}));
