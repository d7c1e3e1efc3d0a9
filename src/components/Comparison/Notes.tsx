import type { PropsWithChildren } from 'react';

import { stylesOf } from '../../lib/styles';
import { sloMarks } from './Table';

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

const useStyles = stylesOf((theme) => ({
  notes: {
    display: 'flex',
    flexWrap: 'wrap',
    gap: theme.spacing(0, 2),
    margin: 0,
    padding: 0,
    listStyle: 'none',
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
  },
}));
