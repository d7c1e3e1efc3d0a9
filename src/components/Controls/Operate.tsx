import { cancelModeChange, changeMode, patchWorkload, type Live, type WorkloadPatch } from '../../client';
import type { Known } from '../../lib/known';
import type { LevelKind } from '../../lib/level';
import { stylesOf, WRAP } from '../../lib/styles';
import { useStable } from '../../lib/useStable';
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
import { useLastLevels } from './useLastLevels';
import { failures, useOperator, type Operator } from './useOperator';

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
  const operator = useOperator(live, lane);
  const { client, known, command, adjustment, draft, confirm } = operator;
  const disabled = live.lane === undefined;
  const sweep = known?.lane.state.sweep;
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
      onCommand={operator.act}
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
      {known && <Modes known={known} operator={operator} disabled={disabled} />}
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

interface ModesProps {
  known: Known;
  operator: Operator;
  disabled: boolean;
}

/** The modes, or the progress of a mode change. */
function Modes({ known: { lane, time }, operator: { client, command, change: ask }, disabled }: ModesProps) {
  const styles = useStyles();
  const { name, state } = lane;
  const change = state.mode_change;
  return (
    <>
      {change && (
        <ModeProgress
          change={change}
          time={time}
          busy={command.busy}
          disabled={disabled}
          onCancel={state.sweep ? undefined : () => command.run('cancel', () => cancelModeChange(client, name))}
          onConfirm={() => command.run('confirm', () => changeMode(client, name, { ...change.to, confirm: true }))}
        />
      )}
      {(!change || change.failed) && !state.sweep && (
        <AskMode
          state={state}
          disabled={disabled || command.busy !== undefined}
          onSay={(request) => command.run('say', () => changeMode(client, name, request))}
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

const useStyles = stylesOf((theme) => ({
  row: { ...WRAP, alignItems: 'flex-start', gap: theme.spacing(1, 4) },
}));
