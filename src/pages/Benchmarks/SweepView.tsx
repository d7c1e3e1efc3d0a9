import { Alert } from '@grafana/ui';

import type { Live, Me, Sweep, SweepSummary } from '../../client';
import { NotLoaded } from '../../components/Loading';
import { CapacityView, Differences, hasEnded, SweepFigures, useSweep } from '../../components/SweepResult';
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
  const { value: sweep, problem, at } = useSweep(id);
  if (!sweep) {
    return <NotLoaded what="result" problem={problem} />;
  }
  const isStale = problem !== undefined && !hasEnded(sweep.state);
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
  const summary = newest(sweep, live);
  const { request, trial, capacity, rows } = sweep;
  const seenAt = arrivalOf(live);
  const title = `${kindName(request.kind)}: ${questionText(request)}`;
  return (
    <div className={styles.sweep}>
      <div className={styles.title}>
        <h3>{sweepName(sweep)}</h3>
        <small>{subtitle(summary, request.title ? title : undefined)}</small>
      </div>
      {!hasEnded(summary.state) && (
        <Progress summary={summary} canOperate={canOperate} isLost={isLost} seenAt={seenAt} />
      )}
      {hasEnded(summary.state) && <End summary={summary} />}
      {staleSince !== undefined && (
        <Alert severity="warning" title={`Last updated at ${clock(staleSince)}`} bottomSpacing={0}>
          The load generator does not respond. The figures are refreshed once it does.
        </Alert>
      )}
      {summary.words.length > 0 && (
        <div className={styles.words} role="group" aria-label="Findings">
          {summary.words.map((sentence) => (
            <p key={sentence}>{sentence}</p>
          ))}
        </div>
      )}
      {trial && <Differences key={sweep.id} trial={trial} request={request} />}
      {capacity && <CapacityView capacity={capacity} request={request} />}
      {(rows.length > 0 || (!trial && !hasEnded(summary.state))) && <SweepFigures sweep={sweep} />}
      <Spans spans={sweep.spans} />
      <div className={styles.outcome}>
        {sweep.spans.length > 0 && <Reports id={sweep.id} />}
        {canOperate && rows.length > 0 && <MakeBaseline key={sweep.id} sweep={sweep} isLost={isLost} />}
        {canOperate && <Delete sweep={sweep} isLost={isLost} onDeleted={onDeleted} />}
      </div>
    </div>
  );
}

/** The snapshot reports the progress of the running sweep every second. */
function newest(sweep: Sweep, { lane }: Live): SweepSummary {
  const now = lane?.state.sweep;
  return now?.id === sweep.id && !hasEnded(sweep.state) ? now : sweep;
}

function subtitle({ by, asked, ended, request: { slo, seed } }: SweepSummary, question: string | undefined): string {
  const lasted = ended && ` in ${span((Date.parse(ended) - Date.parse(asked)) / 1000)}`;
  const objectives = slo && `SLO: TTFT ≤ ${1000 * slo.ttft} ms, TPOT ≤ ${1000 * slo.tpot} ms`;
  const when = `started ${dateTime(asked)} by ${by}${ended ? `, ended${lasted}` : ''}`;
  return [question, when, objectives, `seed ${seed}`].filter(Boolean).join(' · ');
}

function End({ summary }: { summary: SweepSummary }) {
  const { state, reason, request, words } = summary;
  if (state === 'failed') {
    return (
      <Alert severity="error" title={`The ${kindWord(request.kind)} failed`} bottomSpacing={0}>
        {reason}. {measuredText(summary.progress)}.
      </Alert>
    );
  }
  if (words.length > 0) {
    return null; // the figures contain it
  }
  return (
    <p role="status">
      {state === 'cancelled' ? `Cancelled${reasonSuffix(summary)}. ` : 'Done. '}
      {measuredText(summary.progress)}.{state === 'done' && reason ? ` ${reason}.` : ''}
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
  words: {
    ...COLUMN,
    gap: theme.spacing(0.5),
    maxWidth: '100ch',
    padding: theme.spacing(1, 1.5),
    borderLeft: `3px solid ${theme.colors.primary.border}`,
    background: theme.colors.background.secondary,
    textWrap: 'pretty',
    '& p:first-child': { ...theme.typography.h5, margin: 0 },
  },
  outcome: { ...COLUMN, alignItems: 'flex-start', gap: theme.spacing(1) },
}));
