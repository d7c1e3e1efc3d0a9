import type { Twin, TwinArrangement } from '../../client';
import { ModeProgress } from '../../components/Controls/ModeProgress';
import { Choices } from '../../components/Controls/ModeSwitch';
import { SIDES } from '../../components/Twin';
import type { Question } from '../../lib/losses';
import { sweepHint, sweepInProgress } from '../../lib/sweeps';
import type { Both } from './useBoth';
import type { Steer } from './useSteer';

const names: Record<TwinArrangement, string> = {
  apart: 'As configured',
  swapped: 'Swapped',
  same: 'Same on both',
};

const notes: Record<TwinArrangement, string> = {
  apart: 'Each lane runs the mode it was configured with.',
  swapped: 'Each lane runs the other’s mode: differences between the clusters now work in the opposite direction.',
  same: 'Both lanes run the first one’s mode: any difference now is between the clusters.',
};

/** The assignment of modes to lanes, for operators. A change requires a confirmation. */
export function Arrange({ twin, both: { known, sides }, steer }: { twin: Twin; both: Both; steer: Steer }) {
  const changes = SIDES.flatMap((key) => known?.[key].lane.state.mode_change ?? []);
  const under = changes.some(({ failed }) => !failed);
  const sweep = known?.a.lane.state.sweep ?? known?.b.lane.state.sweep;
  const { arranged } = twin;
  return (
    <>
      {changes.map((change, i) => (
        <ModeProgress key={i} change={change} time={known?.a.time ?? change.started} disabled={!sides.a.lane} />
      ))}
      {steer.may && (
        <Choices
          label="Modes"
          choices={(['apart', 'swapped', 'same'] as const).map((value) => ({
            value,
            selected: value === arranged,
            offered: true,
          }))}
          name={(value) => names[value]}
          disabled={under || steer.action.busy !== undefined}
          reason={sweep && `${sweepInProgress(sweep)}. ${sweepHint(sweep)}`}
          note={notes[arranged]}
          onChoose={steer.ask}
        />
      )}
    </>
  );
}

/** Confirms that modes are switched on both lanes. */
export function arrangeQuestion(arranged: TwinArrangement): Question {
  return {
    title: `Change to “${names[arranged]}”?`,
    body:
      `${notes[arranged]} Both workloads stop, the modes change, and both start again at the ` +
      'same concurrency with cold caches. The figures settle again, which takes a minute or ' +
      'more, and the pair count restarts.',
    confirm: 'Change',
  };
}
