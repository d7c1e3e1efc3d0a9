import { memo } from 'react';

import type { BoothEvent } from '../../client';
import { DataTable, UNSTACKED } from '../../components/DataTable';
import { stylesOf } from '../../lib/styles';
import { dateTime } from '../../lib/time';
import { kindNames } from './kinds';

/** Events as a table, in the order given; on a phone, a card for each. */
export const EventTable = memo(function EventTable({ events }: { events: BoothEvent[] }) {
  const styles = useStyles();
  const lanes = new Set(events.map(({ lane }) => lane ?? '').filter(Boolean)).size > 1;
  return (
    <DataTable label="Events, newest first" className={styles.table} stacks>
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
            <th scope="row">
              <time dateTime={time}>{dateTime(time)}</time>
            </th>
            <td>{kindNames[kind]}</td>
            <td>{by}</td>
            {lanes && <td data-column="Lane">{lane}</td>}
            <td data-wide>{text}</td>
          </tr>
        ))}
      </tbody>
    </DataTable>
  );
});

const useStyles = stylesOf(() => ({
  table: {
    '& :is(th, td)': { overflowWrap: 'anywhere' },
    [UNSTACKED]: { '& :is(th, td):not(:last-child)': { whiteSpace: 'nowrap' } },
  },
}));
