import { memo } from 'react';
import { cx } from '@emotion/css';

import { useLive, type Member, type MemberState } from '../../client';
import { lastSnapshot } from '../../lib/known';
import { memberStates, shownMembers } from '../../lib/members';
import { stylesOf } from '../../lib/styles';
import { DataTable, UNSTACKED } from '../DataTable';
import { Section } from '../Section';
import { columns, notes, totals } from './model';

/** The load generators that hold the conversations. It renders nothing unless there are several. */
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
        'The load generators that run the conversations for this one. Each reports its lag (p95 ' +
        'of the last 10 s) and its CPU use as a share of all cores of its machine. A late member ' +
        'loses its share of the conversations to the others until it has been on time for a ' +
        'while. The clock offset is how far a member’s clock is ahead of this load generator’s; ' +
        'times are corrected by it.'
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
  const { members: count, states, conversations } = totals(members);
  return (
    <DataTable label="Members as a table" className={styles.table} stacks>
      <thead>
        <tr>
          <th scope="col">Member</th>
          <th scope="col">State</th>
          {columns.map(({ name, note }) => (
            <th key={name} scope="col">
              {name}
              {note && <small> {note}</small>}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {members.map((member) => (
          <Row key={member.id} member={member} />
        ))}
      </tbody>
      <tfoot>
        <tr>
          <th scope="row">{count}</th>
          <td data-wide>{states}</td>
          <td data-column="Conversations">{conversations}</td>
        </tr>
      </tfoot>
    </DataTable>
  );
}

const Row = memo(function Row({ member }: { member: Member }) {
  const styles = useStyles();
  const { name, state } = member;
  const remarks = notes(member);
  return (
    <>
      <tr className={cx(remarks.length > 0 && styles.noted)}>
        <th scope="row">{name}</th>
        <td data-wide>
          <span className={cx(styles.dot, styles[state])} aria-hidden="true" />
          {memberStates[state]}
        </td>
        {columns.map((column) => (
          <td key={column.name} data-column={[column.name, column.note].filter(Boolean).join(', ')}>
            {column.value(member)}
          </td>
        ))}
      </tr>
      {remarks.length > 0 && (
        <tr>
          <td colSpan={2 + columns.length} className={styles.note} data-wide>
            {remarks.join(' ')}
          </td>
        </tr>
      )}
    </>
  );
});

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
    note: { textWrap: 'pretty' },
  };
});
