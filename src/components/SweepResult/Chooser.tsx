import type { SweepSummary } from '../../client';
import { stateWord, sweepName } from '../../lib/sweeps';
import { dateTime } from '../../lib/time';
import { Choice } from '../Choice';

interface ChooserProps {
  /** Newest first. */
  all: SweepSummary[];
  /** The sweep in view; '' for the newest. */
  id: string;
  onChoose(id: string): void;
}

/** Chooses the sweep in view. */
export function Chooser({ all, id, onChoose }: ChooserProps) {
  const options = [
    { value: '', label: 'The newest' },
    ...all.map((sweep) => ({
      value: sweep.id,
      label: sweepName(sweep),
      description: `${dateTime(sweep.asked)}, ${stateWord(sweep.state)}`,
    })),
  ];
  return <Choice label="Show" options={options} value={id} onChange={onChoose} />;
}
