import { Alert, Button } from '@grafana/ui';

import { number, span } from '../../lib/format';
import { LINE, progressBar, stylesOf, visuallyHidden } from '../../lib/styles';
import type { Simulating } from './useSimulation';

/** The progress of the answer, its problems, and its buttons. */
export function Progress({ answer, cancel, retry }: Simulating) {
  const styles = useStyles();
  const { phase, problem, result } = answer;
  switch (phase) {
    case 'done':
      return (
        <p className={styles.line} role="status">
          {number(result?.runs)} runs computed.
        </p>
      );
    case 'failed':
    case 'lost':
      return (
        <Alert
          severity={phase === 'lost' ? 'warning' : 'error'}
          title={titles(problem?.status)[phase]}
          bottomSpacing={1}
        >
          <p>
            {problem?.message} {phase === 'lost' && 'The question is sent again once it responds.'}
          </p>
          {problem?.status !== 403 && phase === 'failed' && (
            <Button variant="secondary" icon="sync" onClick={retry}>
              Try again
            </Button>
          )}
        </Alert>
      );
    case 'cancelled':
      return (
        <div className={styles.line}>
          <span role="status">
            Cancelled{problem ? `: ${problem.message}` : ''}. {partial(answer)}
          </span>
          <Button variant="secondary" size="sm" icon="sync" onClick={retry}>
            Compute again
          </Button>
        </div>
      );
    default:
      return <ComputingBar answer={answer} cancel={cancel} />;
  }
}

function titles(status: number | undefined) {
  return {
    lost: 'The load generator does not respond',
    failed: status === 403 ? 'You cannot start simulations' : 'The simulation failed',
  };
}

/** The title of an answer that is not complete. */
function partial({ result, isEarlier }: Simulating['answer']): string {
  return result && !isEarlier
    ? `The curves cover ${number(result.progress.done)} of ${number(result.progress.of)} runs.`
    : 'Nothing was computed.';
}

/** The bar has a fixed height, so nothing below it moves. */
function ComputingBar({ answer: { phase, progress }, cancel }: Pick<Simulating, 'answer' | 'cancel'>) {
  const styles = useStyles();
  const { ahead = 0, done = 0, of = 0, seconds_left: left } = progress ?? {};
  const words =
    phase === 'queued'
      ? ahead > 0
        ? `Queued: ${number(ahead)} ${ahead === 1 ? 'simulation' : 'simulations'} ahead.`
        : 'About to start…'
      : of > 0
        ? `Computing: ${number(done)} of ${number(of)} ` +
          `runs${left === undefined ? '' : `, about ${span(Math.ceil(left))} left`}.`
        : 'Asking…';
  return (
    <div className={styles.line}>
      <progress className={styles.bar} aria-label="Runs computed" max={Math.max(1, of)} value={done} />
      <span className={styles.words}>{words}</span>
      <span role="status" className={visuallyHidden}>
        {phase === 'queued' ? 'Waiting' : 'Computing'}
      </span>
      <Button variant="secondary" size="sm" icon="times" onClick={cancel}>
        Cancel
      </Button>
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  line: {
    ...LINE,
    gap: theme.spacing(0.5, 1.5),
    minHeight: theme.spacing(4),
    margin: 0,
    color: theme.colors.text.secondary,
    fontVariantNumeric: 'tabular-nums',
  },
  words: { minWidth: '24ch' },
  bar: { ...progressBar(theme), flex: '1 1 120px', maxWidth: 320 },
}));
