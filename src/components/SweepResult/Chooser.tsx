import type { SweepSummary } from '../../client';
import { sweepName } from '../../lib/sweeps';
import { dateTime } from '../../lib/time';
import { Choice } from '../Choice';

interface ChooserProps {
  /** Newest first. */
  all: SweepSummary[];
  /** The sweep in view; '' for the newest. */
  id: string;
  onChoose(id: string): void;
}

const states: Record<SweepSummary['state'], string> = {
  running: 'in progress',
  paused: 'paused',
  done: 'finished',
  cancelled: 'cancelled',
  failed: 'failed',
};

/** Chooses the sweep in view. */
export function Chooser({ all, id, onChoose }: ChooserProps) {
  const options = [
    { value: '', label: 'The newest' },
    ...all.map((sweep) => ({
      value: sweep.id,
      label: sweepName(sweep),
      description: `${dateTime(sweep.asked)}, ${states[sweep.state]}`,
    })),
  ];
  return <Choice label="Show" options={options} value={id} onChange={onChoose} />;
}
