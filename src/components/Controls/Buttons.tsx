import { memo } from 'react';

import { Button, Stack, type IconName } from '@grafana/ui';

import type { State } from '../../client';

/** The actions of the buttons. */
export type Command = 'start' | 'stop' | 'drain';

interface ButtonsProps {
  /** Undefined while nothing is known. */
  phase?: State['phase'];
  disabled: boolean;
  /** The name of the action in progress. */
  busy?: string;
  onCommand(command: Command): void;
}

/** Start, Stop and Drain, each where it has an effect. */
export const Buttons = memo(function Buttons({ phase, disabled, busy, onCommand }: ButtonsProps) {
  const off = disabled || busy !== undefined || phase === undefined;
  const icon = (command: Command, usual?: IconName) => (busy === command ? 'spinner' : usual);
  return (
    <Stack direction="row" gap={1} wrap="wrap">
      <Button
        variant="primary"
        icon={icon('start', 'play')}
        aria-busy={busy === 'start'}
        disabled={off || phase !== 'stopped'}
        onClick={() => onCommand('start')}
      >
        Start
      </Button>
      <Button
        variant="secondary"
        icon={icon('stop', 'square-shape')}
        aria-busy={busy === 'stop'}
        title="Stops the workload immediately; requests in flight are cancelled"
        disabled={off || phase === 'stopped'}
        onClick={() => onCommand('stop')}
      >
        Stop
      </Button>
      <Button
        variant="secondary"
        icon={icon('drain', 'hourglass')}
        aria-busy={busy === 'drain'}
        title="Stops the workload after the turns in flight have ended"
        disabled={off || phase !== 'running'}
        onClick={() => onCommand('drain')}
      >
        Drain
      </Button>
    </Stack>
  );
});
