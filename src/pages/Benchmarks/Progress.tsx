import { useState } from 'react';

import { Alert, Button, ConfirmModal } from '@grafana/ui';

import { changeSweep, useClient, type SweepSummary } from '../../client';
import { ActionFailure } from '../../components/Controls/ActionFailure';
import { useAction } from '../../components/Controls/useAction';
import { SweepBar, useRenewSweeps } from '../../components/SweepResult';
import { COLUMN, LINE, stylesOf } from '../../lib/styles';
import { reasonSuffix, kindWord, progressText, spanText } from '../../lib/sweeps';
import { capital } from '../../lib/text';
import { useNow } from '../../lib/useNow';

interface ProgressProps {
  /** Its newest state. */
  summary: SweepSummary;
  canOperate: boolean;
  isLost: boolean;
  /** The time of the newest snapshot. */
  seenAt: number | undefined;
}

/** The progress of a sweep that has not ended, its present activity, and its buttons. */
export function Progress({ summary, canOperate, isLost, seenAt }: ProgressProps) {
  const styles = useStyles();
  const client = useClient();
  const renew = useRenewSweeps();
  const action = useAction(seenAt);
  const now = useNow();
  const [asks, ask] = useState(false);
  const { id, state, reason, cause, request, progress } = summary;
  const isRunning = state === 'running';
  const word = kindWord(request.kind);
  const change = (to: 'paused' | 'running' | 'cancelled') =>
    action.run(to, async () => {
      await changeSweep(client, id, to);
      renew(id);
    });
  const off = isLost || action.busy !== undefined;
  return (
    <div className={styles.progress}>
      <div className={styles.line}>
        <SweepBar progress={progress} />
        <span className={styles.words}>{progressText(summary, now)}</span>
        {canOperate && (
          <div className={styles.buttons} role="group" aria-label={`The ${word}`}>
            {isRunning ? (
              <Button
                variant="secondary"
                size="sm"
                icon={action.busy === 'paused' ? 'spinner' : 'pause'}
                disabled={off}
                title={
                  'The current span is discarded and measured again on resume. Until then, mode and ' +
                  'workload are restored.'
                }
                onClick={() => change('paused')}
              >
                Pause
              </Button>
            ) : (
              <Button
                variant="primary"
                size="sm"
                icon={action.busy === 'running' ? 'spinner' : 'play'}
                disabled={off}
                title="Continues with the next unfinished span; nothing is measured twice."
                onClick={() => change('running')}
              >
                Resume
              </Button>
            )}
            <Button
              variant="secondary"
              size="sm"
              icon={action.busy === 'cancelled' ? 'spinner' : 'times'}
              disabled={off}
              onClick={() => ask(true)}
            >
              Cancel
            </Button>
          </div>
        )}
      </div>
      {isRunning && progress.span && !isLost && <p className={styles.span}>{spanText(progress.span)}</p>}
      {isRunning && progress.beside && !isLost && <p className={styles.span}>{spanText(progress.beside)}</p>}
      {isRunning && !progress.span && !isLost && <p className={styles.span}>The next span is about to start.</p>}
      {isRunning && reason && (
        <Alert severity="warning" title={capital(reason)} bottomSpacing={0}>
          It continues automatically. No measurements are lost.
        </Alert>
      )}
      {state === 'paused' && (
        <Alert
          severity={cause === undefined || cause === 'operator' ? 'info' : 'warning'}
          title={`Paused${reasonSuffix(summary)}`}
          bottomSpacing={0}
        >
          Measurements are kept. On resume it continues with the next unfinished span.
        </Alert>
      )}
      <ActionFailure action={action} titles={failures} />
      <ConfirmModal
        isOpen={asks}
        title={`Cancel the ${word}?`}
        body="It ends now and cannot be resumed. Its measurements and report are kept."
        confirmText="Cancel it"
        dismissText="Keep it running"
        onConfirm={() => {
          ask(false);
          void change('cancelled');
        }}
        onDismiss={() => ask(false)}
      />
    </div>
  );
}

const failures: Record<string, string> = {
  paused: 'Pausing failed',
  running: 'Resuming failed',
  cancelled: 'Canceling failed',
};

const useStyles = stylesOf((theme) => ({
  progress: { ...COLUMN, gap: theme.spacing(1) },
  line: { ...LINE, gap: theme.spacing(0.5, 2), minHeight: 32 },
  words: { fontVariantNumeric: 'tabular-nums' },
  buttons: { display: 'flex', gap: theme.spacing(1) },
  span: { margin: 0, minHeight: '1.5em', color: theme.colors.text.secondary, fontVariantNumeric: 'tabular-nums' },
}));
