import { memo } from 'react';
import { cx } from '@emotion/css';

import { Alert, Badge } from '@grafana/ui';

import type { LaneSnapshot, Live, LiveState, Replay } from '../../client';
import { isWithheld, verdictText } from '../../lib/clientError';
import { span } from '../../lib/format';
import { memberReasons, memberTroubles } from '../../lib/members';
import { describeLive } from '../../lib/status';
import { LINE, stylesOf } from '../../lib/styles';
import { simulationNote, targetKind, targetNotes, targetTrouble, type TargetKind } from '../../lib/target';
import { sentence } from '../../lib/text';
import { clock, dateTime } from '../../lib/time';
import { useAge, useNow } from '../../lib/useNow';

interface StatusProps {
  live: Live;
  /** The lane's name, which is shown where there are two. */
  lane: string;
  /** Omits that name, where another part of the page has it. */
  unnamed?: boolean;
  /** Whether a long text ends in an ellipsis rather than in a second line. */
  oneLine?: boolean;
}

/** The state of the workload, in a line. A screen reader announces changes. */
export function Status({ live, lane, unnamed, oneLine }: StatusProps) {
  const styles = useStyles();
  const { tone, label, detail } = describeLive(live, lane);
  const lanes = live.state.status === 'live' ? live.state.snapshot.lanes.length : 0;
  return (
    <div className={cx(styles.line, oneLine && styles.oneLine)}>
      <span className={cx(styles.dot, styles[tone])} aria-hidden="true" />
      <span role="status" className={styles.label}>
        {label}
      </span>
      {detail && <span title={oneLine ? detail : undefined}>{detail}</span>}
      {lanes > 1 && !unnamed && <span className={styles.lane}>Lane {lane}</span>}
      {live.state.status === 'live' && live.state.snapshot.replay && <Recorded replay={live.state.snapshot.replay} />}
    </div>
  );
}

/** Reports that the screen shows a recording, and its time. */
function Recorded({ replay: { recorded_at: at, position, length } }: { replay: Replay }) {
  const when = dateTime(at, 'minute');
  const place = `${span(position)} of ${span(length)}`;
  const tooltip =
    `Replay of a recorded run, now at ${place}; then it begins anew. Nothing can be changed, ` +
    'and panels from Prometheus stay empty.';
  return <Badge color="purple" text={`Recorded on ${when}`} tooltip={tooltip} />;
}

/** The age of the last snapshot. */
export function SnapshotAge({ state }: { state: LiveState }) {
  return state.status === 'live' ? <Age receivedAt={state.receivedAt} /> : null;
}

function Age({ receivedAt }: { receivedAt: number }) {
  const styles = useStyles();
  return <span className={styles.age}>Last snapshot {span(useAge(receivedAt))} ago</span>;
}

/**
 * The size of the load generator's own error with its basis, and the late members. It is the one place of a screen for
 * the error, in gray unless an outcome is withheld for it.
 */
export function ClientVerdict({ state }: { state: LiveState }) {
  const styles = useStyles();
  if (state.status !== 'live') {
    return null;
  }
  const { client, members } = state.snapshot;
  const troubles = memberTroubles(members);
  return (
    <>
      <span className={isWithheld(client) ? styles.late : styles.age} title={client.reason}>
        {verdictText(client)}
      </span>
      {troubles && (
        <span className={styles.late} title={memberReasons(members)}>
          {troubles}
        </span>
      )}
    </>
  );
}

interface TroublesProps {
  live: Live;
  /** Omits the target's notices, for places without comparisons and with little room. */
  withoutNotices?: boolean;
}

/** Explains why nothing is live or stored: the load generator or its target is lost, or its database fails. */
export function Troubles({ live, withoutNotices = false }: TroublesProps) {
  const target = live.lane?.target;
  const trouble = live.lane && targetTrouble(live.lane);
  const snapshot = live.state.status === 'live' ? live.state.snapshot : undefined;
  return (
    <>
      {live.state.status === 'lost' && <Loss since={live.state.since} problem={live.state.problem} />}
      {trouble && (
        <Alert severity="error" title={trouble.title} bottomSpacing={0}>
          {trouble.detail}
        </Alert>
      )}
      {snapshot?.store_problem && (
        <Alert severity="warning" title="About the database" bottomSpacing={0}>
          {sentence(snapshot.store_problem)}
        </Alert>
      )}
      {!withoutNotices && target?.reachable && target.notices && (
        <Alert severity="info" title="About the target" bottomSpacing={0}>
          {target.notices.join(' ')}
        </Alert>
      )}
    </>
  );
}

function Loss({ since, problem }: { since: number; problem: string }) {
  const now = useNow();
  return (
    <Alert severity="error" title="The load generator is unreachable" bottomSpacing={0}>
      <div>{problem}</div>
      <div role="timer">
        Since {clock(since)} ({span((now - since) / 1000)})
      </div>
    </Alert>
  );
}

const names: Partial<Record<TargetKind, string>> = { simulated: 'Simulated cluster', mock: 'Mock workers' };

/** Reports that the cluster is simulated, and whether its timing was fitted. It renders nothing for a real one. */
export function Imitation({ lane }: { lane?: LaneSnapshot }) {
  const kind = targetKind(lane, undefined);
  return <Mark kind={kind} note={lane && simulationNote(lane.state)} />;
}

/** Rendered again only when its text changes: a badge with a tooltip is expensive. */
const Mark = memo(function Mark({ kind, note }: { kind: TargetKind; note?: string }) {
  const name = names[kind];
  if (!name) {
    return null;
  }
  return note ? (
    <Badge color="orange" text={`${name}, not calibrated`} tooltip={`${targetNotes[kind]} Not calibrated: ${note}`} />
  ) : (
    <Badge color="blue" text={name} tooltip={targetNotes[kind]} />
  );
});

const useStyles = stylesOf(({ colors, shape, spacing, typography }) => ({
  line: { ...LINE, gap: spacing(0, 1), minWidth: 0 },
  oneLine: {
    flexWrap: 'nowrap',
    whiteSpace: 'nowrap',
    '& > [title]': { overflow: 'hidden', textOverflow: 'ellipsis' },
  },
  dot: { boxSizing: 'border-box', width: 10, height: 10, borderRadius: shape.radius.circle, flex: 'none' },
  good: { background: colors.primary.text },
  busy: { border: `3px solid ${colors.primary.text}` },
  quiet: { background: colors.text.secondary },
  bad: { background: colors.error.main },
  label: { fontWeight: typography.fontWeightMedium },
  lane: { color: colors.text.secondary },
  late: { color: colors.warning.text, fontSize: typography.bodySmall.fontSize },
  age: { color: colors.text.secondary, fontSize: typography.bodySmall.fontSize },
}));
