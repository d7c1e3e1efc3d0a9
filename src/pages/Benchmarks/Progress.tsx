import { Alert, Button, type ButtonVariant, type IconName } from '@grafana/ui';

import { changeSweep, useClient, type SweepSummary } from '../../client';
import { useConfirm } from '../../components/Confirm';
import { ActionFailure } from '../../components/Controls/ActionFailure';
import { useAction } from '../../components/Controls/useAction';
import { SweepBar, useRenewSweeps } from '../../components/SweepResult';
import type { Question } from '../../lib/losses';
import { COLUMN, LINE, stylesOf } from '../../lib/styles';
import { reasonSuffix, kindWord, progressText, spanText } from '../../lib/sweeps';
import { capital } from '../../lib/text';
import { useNow } from '../../lib/useNow';

interface ProgressProps {
  sweep: SweepSummary;
  canOperate: boolean;
  isLost: boolean;
  /** The time of the newest snapshot. */
  seenAt: number | undefined;
}

/** The progress of a sweep that has not ended, its present activity, and its buttons. */
export function Progress({ sweep, canOperate, isLost, seenAt }: ProgressProps) {
  const styles = useStyles();
  const client = useClient();
  const renew = useRenewSweeps();
  const action = useAction(seenAt);
  const confirm = useConfirm();
  const now = useNow();
  const { id, state, reason, cause, request, progress } = sweep;
  const isRunning = state === 'running';
  const word = kindWord(request.kind);
  const change = (to: Change) =>
    action.run(to, async () => {
      await changeSweep(client, id, to);
      renew(id);
    });
  const spans = [progress.span, progress.beside].filter((one) => one !== undefined);
  const activity = progress.span ? spans.map((one) => spanText(one)) : ['The next span is about to start.'];
  return (
    <div className={styles.progress}>
      <div className={styles.line}>
        <SweepBar progress={progress} />
        <span className={styles.words}>{progressText(sweep, now)}</span>
        {canOperate && (
          <div className={styles.buttons} role="group" aria-label={`The ${word}`}>
            {([isRunning ? 'paused' : 'running', 'cancelled'] as const).map((to) => {
              const { text, icon, title, variant, question } = changes[to];
              return (
                <Button
                  key={to}
                  variant={variant}
                  size="sm"
                  icon={action.busy === to ? 'spinner' : icon}
                  disabled={isLost || action.busy !== undefined}
                  title={title}
                  onClick={() => confirm.before(question?.(word), () => change(to))}
                >
                  {text}
                </Button>
              );
            })}
          </div>
        )}
      </div>
      {isRunning &&
        !isLost &&
        activity.map((text, i) => (
          <p key={i} className={styles.span}>
            {text}
          </p>
        ))}
      {isRunning && reason && (
        <Alert severity="warning" title={capital(reason)} bottomSpacing={0}>
          It continues automatically. No measurements are lost.
        </Alert>
      )}
      {state === 'paused' && (
        <Alert
          severity={cause === undefined || cause === 'operator' ? 'info' : 'warning'}
          title={`Paused${reasonSuffix(sweep)}`}
          bottomSpacing={0}
        >
          Measurements are kept. On resume it continues with the next unfinished span.
        </Alert>
      )}
      <ActionFailure action={action} titles={failures} />
      {confirm.dialog}
    </div>
  );
}

/** What an operator changes a sweep to. */
type Change = 'paused' | 'running' | 'cancelled';

interface ChangeButton {
  text: string;
  icon: IconName;
  variant: ButtonVariant;
  title?: string;
  question?(word: string): Question;
}

const changes: Record<Change, ChangeButton> = {
  paused: {
    text: 'Pause',
    icon: 'pause',
    variant: 'secondary',
    title: 'The current span is discarded and measured again on resume. Until then, mode and workload are restored.',
  },
  running: {
    text: 'Resume',
    icon: 'play',
    variant: 'primary',
    title: 'Continues with the next unfinished span; nothing is measured twice.',
  },
  cancelled: {
    text: 'Cancel',
    icon: 'times',
    variant: 'secondary',
    question: (word) => ({
      title: `Cancel the ${word}?`,
      body: 'It ends now and cannot be resumed. Its measurements and report are kept.',
      confirm: 'Cancel it',
      dismiss: 'Keep it running',
    }),
  },
};

const failures: Record<Change, string> = {
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
