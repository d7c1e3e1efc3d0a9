import { memo, useState } from 'react';
import { useSearchParams } from 'react-router-dom';

import { Alert, Button, RadioButtonGroup } from '@grafana/ui';

import { limits, listEvents, useClient, useLive, usePolled, type BoothEvent, type EventKind } from '../../client';
import { DataTable, UNSTACKED, type Column } from '../../components/DataTable';
import { NotLoaded } from '../../components/Loading';
import { Section } from '../../components/Section';
import { number } from '../../lib/format';
import { lastSnapshot } from '../../lib/known';
import { COLUMN, LINE, stylesOf } from '../../lib/styles';
import { clock, dateTime } from '../../lib/time';
import { LANE } from '../lane';
import { SpanButton } from '../SpanButton';
import { around, spanOf, type Span } from '../span';
import { useChoice } from '../useChoice';

/** The interval between requests for events, in milliseconds. */
export const EVENTS_EVERY = 2000;

/** The number of events requested at first. */
const FIRST = 100;

type Kind = EventKind | '';

/** The name of each kind of event. */
const kindNames: Record<EventKind, string> = {
  start: 'Start',
  stop: 'Stop',
  step: 'Step',
  mode_change: 'Mode',
  settings: 'Settings',
  baseline: 'Baseline',
  sweep: 'Benchmark',
  member: 'Member',
};

const kinds = [
  { value: '' as Kind, label: 'All' },
  ...Object.entries(kindNames).map(([value, label]) => ({ value: value as Kind, label })),
];

/** The changes with actor and time, newest first. */
export default function Events() {
  const [params, setParams] = useSearchParams();
  const span = spanOf(params);
  const [chosen, choose] = useChoice('kind');
  const kind = chosen !== undefined && Object.hasOwn(kindNames, chosen) ? (chosen as EventKind) : '';
  return (
    <Section
      title="Events"
      info={
        'Starts, stops, steps, mode changes, settings, baselines, benchmarks and members: who, ' +
        'what and when. The load generator stores them; “who” is the Grafana login or the source ' +
        'of the command.'
      }
      actions={
        <>
          <SpanButton span={span} onClear={() => setParams(kind && { kind }, { replace: true })} />
          <Kinds value={kind} onChange={(next) => choose(next || undefined)} />
        </>
      }
    >
      <List kind={kind} span={span} />
    </Section>
  );
}

/** The kinds to choose from. That of members is offered only where there are some, or it is chosen. */
function Kinds({ value, onChange }: { value: Kind; onChange(kind: Kind): void }) {
  const styles = useStyles();
  const { state } = useLive(LANE);
  const withMembers = value === 'member' || lastSnapshot(state)?.members !== undefined;
  return (
    <RadioButtonGroup
      aria-label="Kind of event"
      className={styles.kinds}
      size="sm"
      options={withMembers ? kinds : kinds.filter((kind) => kind.value !== 'member')}
      value={value}
      onChange={onChange}
    />
  );
}

function List({ kind, span }: { kind: Kind; span: Span }) {
  const styles = useStyles();
  const client = useClient();
  const [limit, setLimit] = useState(span.from ? limits['events.limit'].max : FIRST);
  const { from = 0, to = Infinity } = around(span);
  const { value, problem, at } = usePolled(() => listEvents(client, limit), EVENTS_EVERY, `events ${limit}`);
  if (!value) {
    return <NotLoaded what="events" problem={problem} />;
  }
  const shown = value.filter((event) => {
    const time = Date.parse(event.time);
    return (kind === '' || event.kind === kind) && time >= from && time <= to;
  });
  return (
    <div className={styles.list}>
      {problem && (
        <Alert severity="warning" title="These events may be out of date" bottomSpacing={0}>
          {problem.message} Last refreshed at {clock(at ?? 0)}.
        </Alert>
      )}
      {shown.length > 0 ? <EventTable events={shown} /> : <p>{emptyText(kind, span, value)}</p>}
      <div className={styles.more}>
        <span role="status">
          Showing {number(shown.length)} of the newest {number(value.length)}
        </span>
        {value.length === limit && limit < limits['events.limit'].max && (
          <Button variant="secondary" size="sm" onClick={() => setLimit(limits['events.limit'].max)}>
            Show up to {number(limits['events.limit'].max)}
          </Button>
        )}
      </div>
    </div>
  );
}

function emptyText(kind: Kind, span: Span, all: BoothEvent[]): string {
  if (span.from && all.length > 0) {
    return 'No events of this time.';
  }
  return kind === '' || all.length === 0
    ? 'No events yet. Starts, mode changes and changed settings appear here.'
    : `None of the newest ${number(all.length)} events is of the kind “${kindNames[kind]}”.`;
}

/** Events as a table, in the order given; on a phone, a card for each. */
const EventTable = memo(function EventTable({ events }: { events: BoothEvent[] }) {
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

const useStyles = stylesOf((theme) => ({
  kinds: { flexWrap: 'wrap', maxWidth: '100%' },
  list: { ...COLUMN, gap: theme.spacing(1) },
  more: { ...LINE, gap: theme.spacing(1), color: theme.colors.text.secondary },
  table: {
    '& :is(th, td)': { overflowWrap: 'anywhere' },
    [UNSTACKED]: { '& :is(th, td):not(:last-child)': { whiteSpace: 'nowrap' } },
  },
}));
