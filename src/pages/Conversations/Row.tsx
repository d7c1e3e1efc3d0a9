import React, { memo } from 'react';
import { Link } from 'react-router-dom';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Conversation } from '../../client';
import { errorName } from '../../lib/errorNames';
import { DASH, span } from '../../lib/format';
import { StatusBadge } from './StatusBadge';
import { durationOf, timeOfDay } from './useClock';

/** How high a row is, in pixels. */
export const ROW = 40;

interface RowProps {
  conversation: Conversation;
  /** Its place in the table, from 1 on, the row of heads included. */
  index: number;
  /** Where it leads to. */
  to: string;
  /** Whether Tab comes to it: one row of the table is enough, the arrow keys reach the others. */
  reachable: boolean;
  /** The load generator's clock, for those in progress. */
  now?: number;
}

/** One conversation of the list. All of it is the link. */
export const Row = memo(function Row({ conversation, index, to, reachable, now }: RowProps) {
  const styles = useStyles2(getStyles);
  const { id, status, topic, error_class, turns_done, turns_planned, started } = conversation;
  const duration = durationOf(conversation, now);
  return (
    <tr className={styles.row} aria-rowindex={index}>
      <td>
        <StatusBadge status={status} />
      </td>
      <td title={error_class ? `${topic}: ${errorName(error_class)}` : topic}>
        <Link to={to} className={styles.link} tabIndex={reachable ? 0 : -1} data-conversation={id}>
          {topic}
        </Link>
        {error_class && <span className={styles.failure}>{errorName(error_class)}</span>}
      </td>
      <td>
        {turns_done} of {turns_planned}
      </td>
      <td>{duration === undefined ? DASH : span(duration)}</td>
      <td>{timeOfDay(started)}</td>
    </tr>
  );
});

const getStyles = (theme: GrafanaTheme2) => ({
  row: css({
    position: 'relative', // the link covers it
    height: ROW,
    '& td': {
      padding: theme.spacing(0, 1),
      borderBottom: `1px solid ${theme.colors.border.weak}`,
      overflow: 'hidden',
      textOverflow: 'ellipsis',
      whiteSpace: 'nowrap',
    },
    '&:hover': { background: theme.colors.action.hover },
    '&:focus-within': { outline: `2px solid ${theme.colors.primary.border}`, outlineOffset: -2 },
  }),
  failure: css({ marginLeft: theme.spacing(1.5), color: theme.colors.error.text }),
  link: css({
    color: theme.colors.text.link,
    '&::after': { content: '""', position: 'absolute', inset: 0 },
    '&:focus, &:focus-visible': { outline: 'none', boxShadow: 'none' },
  }),
});
