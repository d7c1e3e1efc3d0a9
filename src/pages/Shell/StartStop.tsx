import { Button, Icon } from '@grafana/ui';

import { useMe, type Live, type Me } from '../../client';
import { Buttons, type Command } from '../../components/Controls/Buttons';
import type { Action } from '../../components/Controls/useAction';
import { failures, useOperator } from '../../components/Controls/useOperator';
import { stylesOf } from '../../lib/styles';
import { kindWord, sweepInProgress } from '../../lib/sweeps';
import { LANE } from '../lane';

const COMMANDS: Command[] = ['start', 'stop'];

/** Starts and stops the workload from every page. Without permission, it shows why. */
export function StartStop({ live }: { live: Live }) {
  const styles = useStyles();
  const me = useMe();
  const why = readOnlyReason(me);
  if (why) {
    return (
      <span className={styles.readOnly} title={why}>
        <Icon name="lock" /> Read only
      </span>
    );
  }
  return <Workload live={live} known={me !== undefined} />;
}

/** Returns why the user may not operate; undefined with permission, and while that is not known. */
export function readOnlyReason(me: Me | undefined): string | undefined {
  if (!me || me.canOperate) {
    return undefined;
  }
  if (me.replay) {
    return 'This is the replay of a recording: nothing can be started or changed.';
  }
  return me.role
    ? `The role ${me.role} can view but not start or stop the workload.`
    : 'Starting and stopping the workload requires the token.';
}

/** The available actions. There are none while the load generator is unreachable. */
function Workload({ live, known }: { live: Live; known: boolean }) {
  const styles = useStyles();
  const operator = useOperator(live, LANE);
  const state = operator.known?.lane.state;
  const sweep = state?.sweep;
  const phase = sweep ? 'running' : state?.phase; // a sweep between its spans, too, is paused by Stop and refuses Start
  return (
    <div className={styles.place} role="group" aria-label="Workload">
      <Buttons
        commands={COMMANDS}
        phase={phase}
        disabled={!known || live.lane === undefined}
        busy={operator.command.busy}
        startTitle={sweep && sweepInProgress(sweep)}
        stopTitle={sweep && `Also pauses the ${kindWord(sweep.request.kind)}`}
        onCommand={operator.act}
      />
      <Failure action={operator.command} />
      {operator.confirm.dialog}
    </div>
  );
}

function Failure({ action: { failure, dismiss } }: { action: Action }) {
  const styles = useStyles();
  if (!failure) {
    return null;
  }
  return (
    <div className={styles.failure} role="alert">
      <span>
        {failures[failure.name]}: {failure.problem.message}
      </span>
      <Button size="sm" variant="secondary" icon="times" aria-label="Dismiss" onClick={dismiss} />
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  place: { position: 'relative', display: 'flex', flexWrap: 'wrap', alignItems: 'center', gap: theme.spacing(1) },
  readOnly: {
    display: 'inline-flex',
    alignItems: 'center',
    gap: theme.spacing(0.5),
    color: theme.colors.text.secondary,
    whiteSpace: 'nowrap',
  },
  failure: {
    display: 'flex',
    alignItems: 'center',
    justifyContent: 'space-between',
    gap: theme.spacing(1),
    flexBasis: '100%',
    maxWidth: theme.spacing(60),
    padding: theme.spacing(0.5, 1),
    border: `1px solid ${theme.colors.error.border}`,
    borderRadius: theme.shape.radius.default,
    color: theme.colors.error.text,
  },
}));
