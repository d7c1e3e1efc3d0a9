import { cx } from '@emotion/css';

import { useLive, type Member, type MemberState } from '../../client';
import { number, percent } from '../../lib/format';
import { lastSnapshot } from '../../lib/known';
import { memberStates, shownMembers } from '../../lib/members';
import { stylesOf } from '../../lib/styles';
import { DataTable, UNSTACKED, type Column } from '../DataTable';
import { Section } from '../Section';
import { lag, notes, roundTrip, totals } from './model';

/** The processes that send the turns. It renders nothing unless there are several. */
export function Members({ lane }: { lane: string }) {
  const { state } = useLive(lane);
  const members = shownMembers(lastSnapshot(state)?.members);
  if (members.length === 0) {
    return null;
  }
  return (
    <Section
      title="Members"
      info={
        'The processes that send the turns of this load generator. Each reports its lag (p95 of ' +
        'the last 10 s) and its CPU use as a share of all cores of its machine. A late member gets ' +
        'no turns until it has been on time for 30 s, while others are on time. The round trip is ' +
        'the time for a message to the member and its answer. It is in no figure, and delays each ' +
        'next turn.'
      }
    >
      {state.status === 'lost' ? (
        <p>No member data: the load generator is unreachable.</p>
      ) : (
        <MemberTable members={members} />
      )}
    </Section>
  );
}

function MemberTable({ members }: { members: Member[] }) {
  const styles = useStyles();
  const { members: count, states, turns } = totals(members);
  const columns: Array<Column<Member>> = [
    { name: 'Member', cell: ({ name }) => name, foot: count },
    {
      name: 'State',
      isWide: true,
      isUnnamed: true,
      cell: ({ state }) => (
        <>
          <span className={cx(styles.dot, styles[state])} aria-hidden="true" />
          {memberStates[state]}
        </>
      ),
      foot: states,
    },
    { name: 'Turns in flight', cell: (member) => number(member.turns), foot: turns },
    { name: 'Lag', note: 'p95 of 10 s', cell: lag },
    { name: 'Round trip', cell: roundTrip },
    { name: 'CPU', note: 'of all cores', cell: ({ client }) => percent(client.cpu_ratio) },
  ];
  return (
    <DataTable
      label="Members as a table"
      className={styles.table}
      stacks
      columns={columns}
      rows={members}
      keyOf={({ id }) => id}
      rowClass={(member) => (notes(member).length > 0 ? styles.noted : undefined)}
      below={(member) => notes(member).join(' ')}
    />
  );
}

const useStyles = stylesOf(({ colors, shape, spacing, typography }) => {
  const state = (background: string) => ({ background });
  const states: Record<MemberState, { background: string }> = {
    present: state(colors.primary.text),
    late: state(colors.warning.main),
    leaving: state(colors.text.secondary),
    refused: state(colors.error.main),
  };
  return {
    ...states,
    table: {
      maxWidth: 960,
      textWrap: 'pretty',
      '& tbody th': { overflowWrap: 'anywhere' },
      '& tfoot :is(th, td)': { fontWeight: typography.fontWeightMedium },
      '& tfoot :is(tr, th, td)': { borderBottom: 'none' },
      [UNSTACKED]: { '& :is(th, td):nth-child(n + 3)': { textAlign: 'right' } },
    },
    dot: {
      display: 'inline-block',
      width: 10,
      height: 10,
      marginRight: spacing(1),
      borderRadius: shape.radius.circle,
    },
    noted: { '&&, && > *': { borderBottom: 'none', paddingBottom: 0 } },
  };
});
