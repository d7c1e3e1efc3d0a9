import { Alert } from '@grafana/ui';

import type { Live, Me, Sweep } from '../../client';
import { NotLoaded } from '../../components/Loading';
import { Findings, hasEnded, SweepFigures, useSweep, withNewest } from '../../components/SweepResult';
import { span } from '../../lib/format';
import { arrivalOf } from '../../lib/known';
import { COLUMN, stylesOf } from '../../lib/styles';
import { reasonSuffix, kindName, kindWord, measuredText, questionText, sweepName } from '../../lib/sweeps';
import { clock, dateTime } from '../../lib/time';
import { Delete, MakeBaseline, Reports } from './Outcome';
import { Progress } from './Progress';
import { Spans } from './Spans';

interface SweepViewProps {
  id: string;
  live: Live;
  me: Me | undefined;
  onDeleted(): void;
}

/** A sweep: its progress while it has not ended, and its result. */
export function SweepView({ id, live, me, onDeleted }: SweepViewProps) {
  const { value, problem, at } = useSweep(id);
  if (!value) {
    return <NotLoaded what="result" problem={problem} />;
  }
  const isStale = problem !== undefined && !hasEnded(value.state);
  const sweep = withNewest(value, live);
  return <Known sweep={sweep} staleSince={isStale ? at : undefined} live={live} me={me} onDeleted={onDeleted} />;
}

interface KnownProps extends Omit<SweepViewProps, 'id'> {
  sweep: Sweep;
  /** The time of the last successful read, while reads fail. */
  staleSince: number | undefined;
}

function Known({ sweep, staleSince, live, me, onDeleted }: KnownProps) {
  const styles = useStyles();
  const canOperate = me?.canOperate ?? false;
  const isLost = live.lane === undefined;
  const { id, state, trial, rows, spans } = sweep;
  return (
    <div className={styles.sweep}>
      <div className={styles.title}>
        <h3>{sweepName(sweep)}</h3>
        <small>{subtitle(sweep)}</small>
      </div>
      {hasEnded(state) ? (
        <End sweep={sweep} />
      ) : (
        <Progress sweep={sweep} canOperate={canOperate} isLost={isLost} seenAt={arrivalOf(live)} />
      )}
      {staleSince !== undefined && (
        <Alert severity="warning" title={`Last updated at ${clock(staleSince)}`} bottomSpacing={0}>
          The load generator does not respond. The figures are refreshed once it does.
        </Alert>
      )}
      <Findings sweep={sweep} />
      {(rows.length > 0 || (!trial && !hasEnded(state))) && <SweepFigures sweep={sweep} />}
      <Spans spans={spans} />
      <div className={styles.outcome}>
        {spans.length > 0 && <Reports id={id} />}
        {canOperate && rows.length > 0 && <MakeBaseline key={id} sweep={sweep} isLost={isLost} />}
        {canOperate && hasEnded(state) && <Delete sweep={sweep} isLost={isLost} onDeleted={onDeleted} />}
      </div>
    </div>
  );
}

function subtitle({ by, asked, ended, request }: Sweep): string {
  const { kind, title, slo, seed } = request;
  const end = ended ? `, ended in ${span((Date.parse(ended) - Date.parse(asked)) / 1000)}` : '';
  const when = `started ${dateTime(asked)} by ${by}${end}`;
  const question = title && `${kindName(kind)}: ${questionText(request)}`;
  const objectives = slo && `SLO: TTFT ≤ ${1000 * slo.ttft} ms, TPOT ≤ ${1000 * slo.tpot} ms`;
  return [question, when, objectives, `seed ${seed}`].filter(Boolean).join(' · ');
}

function End({ sweep }: { sweep: Sweep }) {
  const { state, reason, request, words, progress } = sweep;
  if (state === 'failed') {
    return (
      <Alert severity="error" title={`The ${kindWord(request.kind)} failed`} bottomSpacing={0}>
        {reason}. {measuredText(progress)}.
      </Alert>
    );
  }
  if (words.length > 0) {
    return null; // the figures contain it
  }
  return (
    <p role="status">
      {state === 'cancelled' ? `Cancelled${reasonSuffix(sweep)}. ` : 'Done. '}
      {measuredText(progress)}.{state === 'done' && reason ? ` ${reason}.` : ''}
    </p>
  );
}

const useStyles = stylesOf((theme) => ({
  sweep: {
    ...COLUMN,
    gap: theme.spacing(1.5),
    minWidth: 0,
    '& p': { margin: 0 },
  },
  title: {
    ...COLUMN,
    '& h3': { ...theme.typography.h4, margin: 0 },
    '& small': { color: theme.colors.text.secondary, fontVariantNumeric: 'tabular-nums' },
  },
  outcome: { ...COLUMN, alignItems: 'flex-start', gap: theme.spacing(1) },
}));
