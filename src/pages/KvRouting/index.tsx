import { useState } from 'react';

import { Badge } from '@grafana/ui';

import { useLive, type Worker } from '../../client';
import { Loading, LoadProblem } from '../../components/Loading';
import { OtherRouters } from '../../components/OtherRouters';
import { Section } from '../../components/Section';
import { lastKnown } from '../../lib/known';
import { sectionGrid, stylesOf } from '../../lib/styles';
import { sentence } from '../../lib/text';
import { hasTwin, LANE, TWIN } from '../lane';
import { Decisions } from './Decisions';
import { Inferred } from './Inferred';
import { INFERRED, requestOf, type Decision } from './routing';
import { Loop } from './Loop';
import { Modes } from './Modes';
import { RecentTurns } from './RecentTurns';
import { TreeSection } from './TreeSection';
import { useDecisions, type Decisions as Known } from './useDecisions';

const NO_WORKERS: Worker[] = [];

/** The KV routing page: why a request goes to its worker, with live decisions. */
export default function KvRouting() {
  const styles = useStyles();
  const live = useLive(LANE);
  const known = lastKnown(live, LANE);
  const active = live.lane !== undefined;
  const decisions = useDecisions(active);
  const [pinned, pin] = useState<Decision>();
  const workers = known?.lane.cluster.workers ?? NO_WORKERS;
  const inferred = decisions.value?.source === INFERRED;
  const listed = (decisions.value?.decisions.length ?? 0) > 0;
  return (
    <div className={styles.page}>
      <div className={styles.first}>
        <Section
          title={listed || !decisions.value ? 'Latest decisions' : 'Latest routed turns'}
          info={
            inferred
              ? 'Why each request went to its worker, inferred from the load generator’s own model of ' +
                'the caches and the requests in progress: this target’s router does not report it. ' +
                'Totals over the list are computed here.'
              : 'Why each request went to its worker. The cluster’s router reports what it knew about ' +
                'every worker; totals over the list are computed here.'
          }
          actions={inferred && <Badge color="orange" text="Inferred" />}
        >
          <State decisions={decisions} running={!known || known.lane.state.running} active={active} />
          {listed && inferred && decisions.value && <Inferred list={decisions.value} />}
          {listed && (
            <Decisions
              decisions={decisions.value?.decisions ?? []}
              dealt={decisions.dealt}
              pinned={pinned}
              onPin={pin}
            />
          )}
          {decisions.value?.source === '' && !listed && <RecentTurns active={active} workers={workers} />}
        </Section>
      </div>
      {(hasTwin(live) ? [LANE, TWIN] : [LANE]).map((lane) => (
        <Section
          key={lane}
          title={lane === LANE ? 'Other routers on the same traffic' : `Other routers on the traffic of lane ${lane}`}
          info={
            'What other routing policies would have found in caches as large as the cluster’s, for ' +
            'the actual requests of the last 60 seconds, next to what was measured. The load ' +
            'generator computes this; no extra requests are sent.'
          }
        >
          <OtherRouters lane={lane} />
        </Section>
      ))}
      <TreeSection
        active={active}
        pinned={pinned && requestOf(pinned).conversation}
        workers={workers}
        time={known ? Date.parse(known.time) : 0}
      />
      <Loop />
      <Modes lane={known?.lane} />
    </div>
  );
}

/** Explains why there are no decisions, or no new ones. */
function State({ decisions, running, active }: { decisions: Known; running: boolean; active: boolean }) {
  const { value, problem } = decisions;
  return (
    <>
      <LoadProblem what="decisions" problem={problem} />
      {!value && !problem && active && <Loading text="Loading the latest decisions…" />}
      {!value && !active && <p>No current data on the router.</p>}
      {value && value.decisions.length === 0 && (
        <p>{sentence(value.message ?? 'The router has not routed any requests yet; start the workload')}</p>
      )}
      {value && value.decisions.length > 0 && !(running && active) && (
        <p>
          {active ? 'The workload is stopped' : 'The load generator is unreachable'}: these are the last known
          decisions.
        </p>
      )}
    </>
  );
}

const useStyles = stylesOf((theme) => ({
  page: { ...sectionGrid(theme), fontSize: 'clamp(14px, 0.9vw, 20px)' },
  // Two tables beside each other, with the tables of the routers below.
  first: { minWidth: 0, gridColumn: '1 / -1' },
}));
