import type { ReactNode } from 'react';

import { Alert, EmptyState, LinkButton } from '@grafana/ui';

import type { Sweep, SweepSummary } from '../../client';
import { COLUMN, stylesOf } from '../../lib/styles';
import { stateWord, sweepName } from '../../lib/sweeps';
import { clock, dateTime } from '../../lib/time';
import { Choice } from '../Choice';
import { Loading } from '../Loading';
import { Troubles } from '../Status';
import { SpanTable } from './SpanTable';
import { SweepFigures } from './SweepFigures';
import { hasEnded, useShown, type Shown } from './useSweeps';
import { Verdict } from './Verdict';

/** The part of a sweep in view: its verdict, its curves with their table, or its spans. */
export type SweepPart = 'verdict' | 'curves' | 'spans';

interface SweepResultProps {
  lane: string;
  /** The sweep's id; empty: the newest. */
  id: string;
  part: SweepPart;
  pageHref: string;
  /** Called when a viewer chooses another sweep; '' for the newest. */
  onChoose(id: string): void;
}

/** One part of the result of a trial, a sweep of levels or a capacity search. It is read-only. */
export function SweepResult({ lane, id, part, pageHref, onChoose }: SweepResultProps) {
  const styles = useStyles();
  const shown = useShown(lane, id);
  if (part !== 'verdict' && shown.all?.length === 0) {
    return null; // reported beside the verdict
  }
  return (
    <div className={styles.stack}>
      {part === 'verdict' && <Troubles live={shown.live} withoutNotices />}
      <Stale shown={shown} />
      {part === 'verdict' && shown.all && shown.all.length > 0 && (
        <Choice label="Show" options={optionsOf(shown.all)} value={id} onChange={onChoose} />
      )}
      <Content shown={shown} pageHref={pageHref}>
        {(sweep) => parts[part](sweep)}
      </Content>
    </div>
  );
}

function optionsOf(all: SweepSummary[]) {
  const sweeps = all.map((sweep) => ({
    value: sweep.id,
    label: sweepName(sweep),
    description: `${dateTime(sweep.asked)}, ${stateWord(sweep.state)}`,
  }));
  return [{ value: '', label: 'The newest' }, ...sweeps];
}

const parts: Record<SweepPart, (sweep: Sweep) => ReactNode> = {
  verdict: (sweep) => <Verdict sweep={sweep} />,
  curves: (sweep) => <SweepFigures sweep={sweep} />,
  spans: (sweep) => <SpanTable spans={sweep.spans} />,
};

/** The sweep once it is loaded, or why there is none. */
function Content({ shown, pageHref, children }: { shown: Shown; pageHref: string; children(sweep: Sweep): ReactNode }) {
  const { all, chosen, sweep, problem } = shown;
  if (sweep) {
    return children(sweep);
  }
  if (all && !chosen) {
    return <NoSweep isEmpty={all.length === 0} pageHref={pageHref} />;
  }
  return problem ? null : <Loading text="Loading the result…" />;
}

function NoSweep({ isEmpty, pageHref }: { isEmpty: boolean; pageHref: string }) {
  return (
    <EmptyState
      variant={isEmpty ? 'call-to-action' : 'not-found'}
      hideImage
      role="status"
      message={isEmpty ? 'No trial, sweep or capacity search yet' : 'This sweep has been deleted'}
      button={
        <LinkButton icon="play" href={pageHref}>
          Open Benchmarks
        </LinkButton>
      }
    >
      {!isEmpty && 'Choose another one, or start one on the Benchmarks page.'}
    </EmptyState>
  );
}

/** Reports that the view is out of date, if it is. */
function Stale({ shown: { problem, sweep, asOf } }: { shown: Shown }) {
  if (!problem) {
    return null;
  }
  return (
    <Alert severity="warning" title="The load generator does not respond" bottomSpacing={0}>
      <div>{problem.message}</div>
      {sweep && (
        <div>
          {hasEnded(sweep.state) ? 'The run shown has ended and is complete.' : `Last updated at ${clock(asOf ?? 0)}.`}
        </div>
      )}
    </Alert>
  );
}

const useStyles = stylesOf((theme) => ({
  stack: { ...COLUMN, gap: theme.spacing(1.5), padding: theme.spacing(0.5) },
}));
