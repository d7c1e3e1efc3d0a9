import type { Twin } from '../../client';
import { ModeProgress } from '../../components/Controls/ModeProgress';
import { Choices } from '../../components/Controls/ModeSwitch';
import { SIDES } from '../../components/Twin';
import { sweepHint, sweepInProgress } from '../../lib/sweeps';
import { names, notes } from './arrangements';
import type { Both } from './useBoth';
import type { Steer } from './useSteer';

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
