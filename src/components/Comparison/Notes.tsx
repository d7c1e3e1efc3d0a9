import type { PropsWithChildren } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import { sloMarks } from './Table';

/** A list of explanations of a table's terms and marks; its children are the items. */
export function Notes({ label, children }: PropsWithChildren<{ label?: string }>) {
  const styles = useStyles2(getStyles);
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

const getStyles = (theme: GrafanaTheme2) => ({
  notes: css({
    display: 'flex',
    flexWrap: 'wrap',
    gap: theme.spacing(0, 2),
    margin: 0,
    padding: 0,
    listStyle: 'none',
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
  }),
});
