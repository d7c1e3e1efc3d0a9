import React, { memo } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { BoothEvent } from '../../client';
import { visuallyHidden, WIDEST } from '../../lib/styles';
import { dateTime } from '../../lib/time';
import { kindNames } from './kinds';

/** Events as a table, in the order given. */
export const EventTable = memo(function EventTable({ events }: { events: BoothEvent[] }) {
  const styles = useStyles2(getStyles);
  const lanes = new Set(events.map(({ lane }) => lane ?? '').filter(Boolean)).size > 1;
  return (
    <div className={styles.container} tabIndex={0} role="group" aria-label="Events, newest first">
      <table className={styles.table}>
        <caption className={styles.hidden}>Events, newest first</caption>
        <thead>
          <tr>
            <th scope="col">When</th>
            <th scope="col">Kind</th>
            <th scope="col">Who</th>
            {lanes && <th scope="col">Lane</th>}
            <th scope="col">What</th>
          </tr>
        </thead>
        <tbody>
          {events.map(({ id, time, kind, by, lane, text }) => (
            <tr key={id}>
              <td className={styles.narrow}>
                <time dateTime={time}>{dateTime(time)}</time>
              </td>
              <td className={styles.narrow}>{kindNames[kind]}</td>
              <td className={styles.who}>{by}</td>
              {lanes && <td>{lane}</td>}
              <td>{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
});

const getStyles = (theme: GrafanaTheme2) => ({
  hidden: visuallyHidden,
  container: css({
    maxWidth: WIDEST,
    overflowX: 'auto',
    '&:focus-visible': { outline: `2px solid ${theme.colors.primary.border}` },
  }),
  table: css({
    width: '100%',
    fontVariantNumeric: 'tabular-nums',
    '& th, & td': {
      padding: theme.spacing(0.5, 1),
      textAlign: 'left',
      verticalAlign: 'baseline',
      overflowWrap: 'anywhere',
      borderBottom: `1px solid ${theme.colors.border.weak}`,
    },
    '& th': { color: theme.colors.text.secondary, fontWeight: theme.typography.fontWeightMedium },
    '& td:last-child': { minWidth: '24ch' },
    [theme.breakpoints.down('sm')]: {
      '& th, & td': { padding: theme.spacing(0.5) },
      '& td:last-child': { minWidth: '14ch' },
      '& time': { whiteSpace: 'normal' },
    },
  }),
  narrow: css({ whiteSpace: 'nowrap' }),
  who: css({ minWidth: '10ch' }),
});
