import { Button, Icon } from '@grafana/ui';

import { startWorkload, stopWorkload, useClient, useMe, type Live, type Me } from '../../client';
import { useConfirm } from '../../components/Confirm';
import { Buttons, type Command } from '../../components/Controls/Buttons';
import { useAction, type Action } from '../../components/Controls/useAction';
import { arrivalOf, lastKnown } from '../../lib/known';
import { stopQuestion } from '../../lib/losses';
import { stylesOf } from '../../lib/styles';
import { kindWord, sweepInProgress } from '../../lib/sweeps';
import { useStable } from '../../lib/useStable';
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

/**
 * Returns the available actions. Start keeps the slider's concurrency. There are none while the load generator is
 * unreachable.
 */
function Workload({ live, known }: { live: Live; known: boolean }) {
  const styles = useStyles();
  const client = useClient();
  const action = useAction(arrivalOf(live));
  const confirm = useConfirm();
  const state = lastKnown(live, LANE)?.lane.state;
  const sweep = state?.sweep;
  const phase = sweep ? 'running' : state?.phase; // a sweep between its spans, too, is paused by Stop and refuses Start
  const act = useStable((command: Command) => {
    const question = command === 'stop' && state ? stopQuestion(state, false) : undefined;
    confirm.before(question, () =>
      action.run(command, () =>
        command === 'start' ? startWorkload(client, LANE, {}) : stopWorkload(client, LANE, false)
      )
    );
  });
  return (
    <div className={styles.place} role="group" aria-label="Workload">
      <Buttons
        commands={COMMANDS}
        phase={phase}
        disabled={!known || live.lane === undefined}
        busy={action.busy}
        startTitle={sweep && sweepInProgress(sweep)}
        stopTitle={sweep && `Also pauses the ${kindWord(sweep.request.kind)}`}
        onCommand={act}
      />
      <Failure action={action} />
      {confirm.dialog}
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
        The workload was not {failure.name === 'start' ? 'started' : 'stopped'}: {failure.problem.message}
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
