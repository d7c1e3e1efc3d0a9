import { memo } from 'react';

import { Button, Stack } from '@grafana/ui';

import type { State } from '../../client';

/** The actions of the buttons. */
export type Command = 'start' | 'stop' | 'drain' | 'measure';

interface ButtonsProps {
  /** Undefined while nothing is known. */
  phase?: State['phase'];
  /** Whether a sweep has the workload, which measures by itself. */
  isTaken?: boolean;
  disabled: boolean;
  /** The name of the action in progress. */
  busy?: string;
  /** The buttons, from the left; by default, all. */
  commands?: Command[];
  /** The titles of Start and Stop, in place of the usual ones. */
  startTitle?: string;
  stopTitle?: string;
  onCommand(command: Command): void;
}

const ALL: Command[] = ['start', 'stop', 'drain', 'measure'];

const looks = {
  start: { words: 'Start', variant: 'primary', icon: 'play', title: undefined },
  stop: {
    words: 'Stop',
    variant: 'secondary',
    icon: 'square-shape',
    title: 'Stops the workload immediately; requests in flight are cancelled',
  },
  drain: {
    words: 'Drain',
    variant: 'secondary',
    icon: 'hourglass',
    title: 'Stops the workload after the turns in flight have ended',
  },
  measure: {
    words: 'Measure anew',
    variant: 'secondary',
    icon: 'sync',
    title: 'Begins a new step with the same settings; earlier turns no longer count',
  },
} as const;

/** Start, Stop, Drain and Measure anew, each where it has an effect. */
export const Buttons = memo(function Buttons(props: ButtonsProps) {
  const { phase, isTaken, disabled, busy, commands = ALL, startTitle, stopTitle, onCommand } = props;
  const off = disabled || busy !== undefined || phase === undefined;
  const isUseful = {
    start: phase === 'stopped',
    stop: phase !== 'stopped',
    drain: phase === 'running',
    measure: phase === 'running' && !isTaken,
  };
  const titles = { start: startTitle, stop: stopTitle, drain: undefined, measure: undefined };
  return (
    <Stack direction="row" gap={1} wrap="wrap">
      {commands.map((command) => {
        const { words, variant, icon, title } = looks[command];
        return (
          <Button
            key={command}
            variant={variant}
            icon={busy === command ? 'spinner' : icon}
            aria-busy={busy === command}
            title={titles[command] ?? title}
            disabled={off || !isUseful[command]}
            onClick={() => onCommand(command)}
          >
            {words}
          </Button>
        );
      })}
    </Stack>
  );
});
