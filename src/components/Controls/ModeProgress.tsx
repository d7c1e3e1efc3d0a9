import { Alert, Button, Spinner } from '@grafana/ui';

import type { ModeChange } from '../../client';
import { span } from '../../lib/format';
import { modeText } from '../../lib/names';
import { LINE, stylesOf } from '../../lib/styles';
import { capital } from '../../lib/text';

interface ModeProgressProps {
  change: ModeChange;
  /** The load generator's clock, which also dates the beginning of the change. */
  time: string;
  /** Undefined for viewers. */
  onCancel?(): void;
  /** Confirms that the cluster has been switched by hand. */
  onConfirm?(): void;
  busy?: string;
  disabled?: boolean;
}

const phases: Record<string, string> = {
  stopping: 'Stopping the workload',
  switching: 'Switching',
  waiting_for_operator: 'Waiting for the operator',
  starting: 'Starting the workload',
  rolling_back: 'Rolling back',
};

/** The progress of a mode change, or its failure with the mode in force. */
export function ModeProgress({ change, time, onCancel, onConfirm, busy, disabled }: ModeProgressProps) {
  const styles = useStyles();
  if (change.failed) {
    return (
      <Alert severity="warning" title={`The change to ${modeText(change.to)} failed`} bottomSpacing={0}>
        {capital(change.message)}
      </Alert>
    );
  }
  const waits = change.phase === 'waiting_for_operator';
  return (
    <div className={styles.progress}>
      <Spinner inline />
      <div className={styles.words}>
        <div role="status" className={styles.phase}>
          {modeText(change.from)} → {modeText(change.to)}: {phases[change.phase] ?? change.phase}
        </div>
        <div>
          {change.message} <span className={styles.elapsed}>{elapsed(change, time)}</span>
        </div>
      </div>
      {waits && onConfirm && (
        <Button
          icon={busy === 'confirm' ? 'spinner' : 'check'}
          disabled={disabled || Boolean(busy)}
          onClick={onConfirm}
        >
          Confirm: done
        </Button>
      )}
      {onCancel && (
        <Button
          variant="secondary"
          icon={busy === 'cancel' ? 'spinner' : undefined}
          disabled={disabled || Boolean(busy)}
          onClick={onCancel}
        >
          Cancel the change
        </Button>
      )}
    </div>
  );
}

function elapsed(change: ModeChange, time: string): string {
  return span((Date.parse(time) - Date.parse(change.started)) / 1000);
}

const useStyles = stylesOf((theme) => ({
  progress: {
    ...LINE,
    gap: theme.spacing(1, 2),
    padding: theme.spacing(1, 2),
    border: `1px solid ${theme.colors.info.border}`,
    borderRadius: theme.shape.radius.default,
    background: theme.colors.info.transparent,
  },
  words: { flex: '1 1 240px' },
  phase: { fontWeight: theme.typography.fontWeightMedium },
  elapsed: { color: theme.colors.text.secondary },
}));
