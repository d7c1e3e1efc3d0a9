import { memo } from 'react';

import type { BoothEvent, EventKind } from '../../client';
import { DataTable, UNSTACKED, type Column } from '../../components/DataTable';
import { stylesOf } from '../../lib/styles';
import { dateTime } from '../../lib/time';

/** Events as a table, in the order given; on a phone, a card for each. */
export const EventTable = memo(function EventTable({ events }: { events: BoothEvent[] }) {
  const styles = useStyles();
  const lanes = new Set(events.map(({ lane }) => lane ?? '').filter(Boolean)).size > 1;
  return (
    <DataTable
      label="Events, newest first"
      className={styles.table}
      stacks
      columns={lanes ? columns : columns.filter(({ name }) => name !== 'Lane')}
      rows={events}
      keyOf={({ id }) => id}
    />
  );
});

const columns: Array<Column<BoothEvent>> = [
  { name: 'When', cell: ({ time }) => <time dateTime={time}>{dateTime(time)}</time> },
  { name: 'Kind', cell: ({ kind }) => kindNames[kind], isUnnamed: true },
  { name: 'Who', cell: ({ by }) => by, isUnnamed: true },
  { name: 'Lane', cell: ({ lane }) => lane },
  { name: 'What', cell: ({ text }) => text, isWide: true, isUnnamed: true },
];

/** The name of each kind of event. */
export const kindNames: Record<EventKind, string> = {
  start: 'Start',
  stop: 'Stop',
  step: 'Step',
  mode_change: 'Mode',
  settings: 'Settings',
  baseline: 'Baseline',
  sweep: 'Benchmark',
  member: 'Member',
};

const useStyles = stylesOf(() => ({
  table: {
    '& :is(th, td)': { overflowWrap: 'anywhere' },
    [UNSTACKED]: { '& :is(th, td):not(:last-child)': { whiteSpace: 'nowrap' } },
  },
}));
