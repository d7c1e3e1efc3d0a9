import type { PropsWithChildren } from 'react';

import { span } from '../../lib/format';
import { PLAIN_LIST, stylesOf, WRAP } from '../../lib/styles';
import { sloMarks } from './Table';
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
  settling: boolean;
  /** The time range of the live figures; 0 without any. */
  seconds: number;
}

/** Explains the columns, and the tags in use. */
export function Legend({ model, settling, seconds }: LegendProps) {
  const isOpen = [...model.latencies.rows, ...model.rates.rows].some(({ cells }) =>
    cells.some(({ difference }) => difference?.verdict.includes('not certain'))
  );
  return (
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
      {seconds > 0 && (
        <li>
          <b>Live</b>: the last {span(seconds)} of this step, an hour at most
        </li>
      )}
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
  );
}

const useStyles = stylesOf((theme) => ({
  notes: {
    ...WRAP,
    gap: theme.spacing(0, 2),
    ...PLAIN_LIST,
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
  },
}));
