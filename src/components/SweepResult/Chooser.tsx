import { useId } from 'react';

import { Combobox } from '@grafana/ui';

import type { SweepSummary } from '../../client';
import { stylesOf } from '../../lib/styles';
import { sweepName } from '../../lib/sweeps';
import { dateTime } from '../../lib/time';

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
  const styles = useStyles();
  const label = useId();
  const options = [
    { value: '', label: 'The newest' },
    ...all.map((sweep) => ({
      value: sweep.id,
      label: sweepName(sweep),
      description: `${dateTime(sweep.asked)}, ${states[sweep.state]}`,
    })),
  ];
  return (
    <div className={styles.line}>
      <label htmlFor={label}>Show</label>
      <Combobox
        id={label}
        width="auto"
        minWidth={28}
        options={options}
        value={id}
        onChange={({ value }) => onChoose(value)}
      />
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  line: {
    display: 'flex',
    flexWrap: 'wrap',
    alignItems: 'center',
    gap: theme.spacing(0.5, 1),
    // The longest title must not exceed a phone's width.
    '& > *': { maxWidth: '100%' },
    '& label': { color: theme.colors.text.secondary },
  },
}));
