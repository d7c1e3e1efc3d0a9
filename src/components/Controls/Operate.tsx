import {
  cancelModeChange,
  changeMode,
  measureAnew,
  patchWorkload,
  startWorkload,
  stopWorkload,
  useClient,
  type Live,
  type ModeRequest,
  type WorkloadPatch,
} from '../../client';
import { arrivalOf, lastKnown, type Known } from '../../lib/known';
import type { LevelKind } from '../../lib/level';
import { modeQuestion, stopQuestion } from '../../lib/losses';
import { stylesOf, WRAP } from '../../lib/styles';
import { useStable } from '../../lib/useStable';
import { useConfirm } from '../Confirm';
import { Fold } from '../Fold';
import { fieldOf, Traffic } from '../Traffic';
import { ActionFailure } from './ActionFailure';
import { AskMode, isAsked } from './AskMode';
import { Buttons, type Command } from './Buttons';
import { Concurrency } from './Concurrency';
import { Held, SweepNotice } from './Held';
import { ModeProgress } from './ModeProgress';
import { ModeSwitch } from './ModeSwitch';
import { Openings } from './Openings';
import { equivalentLevel } from './range';
import { useAction, type Action } from './useAction';
import { useConcurrency } from './useConcurrency';
import { useLastLevels } from './useLastLevels';

interface OperateProps {
  live: Live;
  lane: string;
  /** Omits Start, Stop and Drain, where another part of the page has them. */
  bare?: boolean;
}

/** The buttons that no other part of the page has. */
const BARE: Command[] = ['measure'];

/** An operator's controls of a lane. All are disabled during a loss. */
export function Operate({ live, lane, bare }: OperateProps) {
  const styles = useStyles();
  const client = useClient();
  const known = lastKnown(live, lane);
  const seenAt = arrivalOf(live);
  const command = useAction(seenAt);
  const adjustment = useAction(seenAt);
  const draft = useConcurrency(known?.lane.state.concurrency.target ?? 0, (concurrency) =>
    adjustment.run('concurrency', () => patchWorkload(client, lane, { concurrency }))
  );
  const confirm = useConfirm();
  const disabled = live.lane === undefined;
  const sweep = known?.lane.state.sweep;
  const act = useStable((name: Command) => {
    const stops = name === 'stop' || name === 'drain';
    const calls = {
      start: () => startWorkload(client, lane, { concurrency: draft.take() }),
      stop: () => stopWorkload(client, lane, false),
      drain: () => stopWorkload(client, lane, true),
      measure: () => measureAnew(client, lane),
    };
    confirm.before(stops && known ? stopQuestion(known.lane.state, name === 'drain') : undefined, () =>
      command.run(name, calls[name])
    );
  });
  const change = useStable(draft.change);
  const last = useLastLevels(lane, known && draft.value);
  const changeKind = useStable((kind: LevelKind) => {
    const level = last(kind) ?? (known && equivalentLevel(kind, known.lane, known.settings));
    if (level !== undefined) {
      draft.change(level);
    }
  });
  const flush = useStable(draft.flush);
  const open = useStable((openings: number) =>
    adjustment.run('workload', () => patchWorkload(client, lane, { openings }))
  );
  const form = {
    disabled,
    busy: adjustment.busy === 'workload',
    problem: adjustment.failure?.name === 'workload' ? adjustment.failure.problem : undefined,
    onApply: (patch: WorkloadPatch) => adjustment.run('workload', () => patchWorkload(client, lane, patch)),
  };
  const buttons = (
    <Buttons
      commands={bare ? BARE : undefined}
      // A sweep is running between its spans, too: Stop pauses it, and Start is refused.
      phase={sweep ? 'running' : known?.lane.state.phase}
      isTaken={sweep !== undefined}
      disabled={disabled}
      busy={command.busy}
      onCommand={act}
    />
  );
  return (
    <>
      {confirm.dialog}
      <ActionFailure action={command} titles={failures} />
      {/* A problem with a field is shown at the field. */}
      {fieldOf(adjustment.failure?.problem.field) === undefined && (
        <ActionFailure action={adjustment} titles={failures} />
      )}
      <div className={styles.row}>
        {!bare && buttons}
        {known && !sweep && (
          <Concurrency
            value={draft.value}
            onChange={change}
            onDone={flush}
            onKind={changeKind}
            settings={known.settings}
            disabled={disabled}
          />
        )}
        {bare && buttons}
      </div>
      {sweep && <SweepNotice sweep={sweep} />}
      {live.lane && !sweep && <Held lane={live.lane} form={form} />}
      {known && <Modes known={known} lane={lane} disabled={disabled} command={command} />}
      {known?.lane.state.shape.openings !== undefined && !known.lane.state.shape.traffic && !sweep && (
        <Openings
          value={known.lane.state.shape.openings}
          disabled={disabled || adjustment.busy === 'workload'}
          onChange={open}
        />
      )}
      {known && !sweep && (
        <Fold label="Traffic">
          <Traffic {...form} lane={lane} state={known.lane.state} level={draft.value} />
        </Fold>
      )}
    </>
  );
}

interface PartProps {
  known: Known;
  lane: string;
  disabled: boolean;
}

/** The modes, or the progress of a mode change. */
function Modes({ known, lane, disabled, command }: PartProps & { command: Action }) {
  const styles = useStyles();
  const client = useClient();
  const { state } = known.lane;
  const change = state.mode_change;
  const confirm = useConfirm();
  const ask = useStable((request: ModeRequest) =>
    confirm.before(modeQuestion(state, request), () => command.run('mode', () => changeMode(client, lane, request)))
  );
  return (
    <>
      {confirm.dialog}
      {change && (
        <ModeProgress
          change={change}
          time={known.time}
          busy={command.busy}
          disabled={disabled}
          onCancel={state.sweep ? undefined : () => command.run('cancel', () => cancelModeChange(client, lane))}
          onConfirm={() => command.run('confirm', () => changeMode(client, lane, { ...change.to, confirm: true }))}
        />
      )}
      {(!change || change.failed) && !state.sweep && (
        <AskMode
          state={state}
          disabled={disabled || command.busy !== undefined}
          onSay={(request) => command.run('say', () => changeMode(client, lane, request))}
        />
      )}
      {(!change || change.failed) && !state.sweep && !isAsked(state) && (
        <div className={styles.row}>
          <ModeSwitch
            arm={state.arm}
            mode={state.mode}
            speculation={state.speculation}
            driver={state.driver}
            modes={state.modes}
            disabled={disabled || command.busy !== undefined}
            onChange={ask}
          />
        </div>
      )}
    </>
  );
}

/** The failures, by the name of the request. */
export const failures: Record<string, string> = {
  start: 'The workload was not started',
  stop: 'The workload was not stopped',
  drain: 'The workload was not drained',
  measure: 'The measurement was not begun anew',
  duel: 'The trial was not started',
  endTrial: 'The trial was not ended',
  concurrency: 'The concurrency was not changed',
  workload: 'The workload was not changed',
  mode: 'The mode was not changed',
  say: 'The routing mode was not set',
  confirm: 'The confirmation failed',
  cancel: 'The mode change was not cancelled',
};

const useStyles = stylesOf((theme) => ({
  row: { ...WRAP, alignItems: 'flex-start', gap: theme.spacing(1, 4) },
}));
