import { useState } from 'react';

import { Alert } from '@grafana/ui';

import { useLive, type Cluster, type LaneSnapshot } from '../../client';
import { costTexts } from '../../lib/cost';
import { lastKnown } from '../../lib/known';
import { COLUMN, PLAIN_LIST, stylesOf } from '../../lib/styles';
import { whyUnread } from '../../lib/unread';
import { aboutAll, workerCount } from '../../lib/workers';
import { unavailable } from '../Kpis';
import { Loading } from '../Loading';
import { Facts } from './Facts';
import { recentWorkers, withoutFigures, type Seen } from './model';
import { HostCard, WorkerCard } from './WorkerCard';

/** The deployment, and a card for each of its workers. */
export function Workers({ lane: name }: { lane: string }) {
  const styles = useStyles();
  const live = useLive(name);
  const known = lastKnown(live, name);
  const seen = useSeen(known?.lane.cluster, known?.time);
  if (!known) {
    return live.state.status === 'loading' ? (
      <Loading text="Waiting for the first snapshot…" />
    ) : (
      <p>No worker data yet. Workers appear once the load generator responds.</p>
    );
  }
  const isLive = live.lane !== undefined;
  return (
    <div className={styles.workers}>
      <Facts lane={known.lane} isLive={isLive} />
      {isLive && <Problems lane={known.lane} />}
      <ul className={styles.cards} aria-label="Workers">
        {seen.map(({ worker, at }) => {
          const absent = reason(isLive, known.lane.cluster, at, Date.parse(known.time));
          return (
            <WorkerCard
              key={worker.name}
              worker={absent ? withoutFigures(worker) : worker}
              absent={absent}
              unread={whyUnread(known.lane.cluster, 'workers')}
              unreadGPUs={whyUnread(known.lane.cluster, 'gpus')}
            />
          );
        })}
        {isLive && known.lane.cluster.other_gpus?.map((other, i) => <HostCard key={`${i} ${other.host}`} {...other} />)}
      </ul>
      {isLive && known.lane.cost && (
        <div className={styles.note}>Last 60 s: {costTexts(known.lane.cost).join(' · ')}</div>
      )}
      {known.lane.target.kind === 'simulated' && seen.some(({ worker }) => worker.gpus.length > 0) && (
        <div className={styles.note}>
          GPU utilization is simulated: it mimics DCGM_FI_DEV_GPU_UTIL, the share of time with a kernel on the GPU,
          using the model’s timing.
        </div>
      )}
      {seen.length === 0 && <p>No worker has reported yet.</p>}
    </div>
  );
}

/** Returns the workers that report, and those that did a short while ago. */
function useSeen(cluster: Cluster | undefined, time: string | undefined): Seen[] {
  const [seen, setSeen] = useState<{ time?: string; list: Seen[] }>({ list: [] });
  if (seen.time === time || !cluster || !time) {
    return seen.list;
  }
  // Where only some are listed, a worker that leaves the list may still run.
  const before = cluster.all_workers ? [] : seen.list;
  const list = recentWorkers(before, cluster.workers, Date.parse(time));
  setSeen({ time, list }); // set while rendering; React discards this render and starts the next
  return list;
}

/** Explains why a worker has no figures; undefined where it has. */
function reason(isLive: boolean, cluster: Cluster, at: number, now: number): string | undefined {
  if (!isLive) {
    return 'Load generator lost';
  }
  if (!cluster.available) {
    return unavailable(cluster);
  }
  return at < now ? `Lost: no data for ${Math.round((now - at) / 1000)} s` : undefined;
}

function Problems({ lane: { cluster, target } }: { lane: LaneSnapshot }) {
  const styles = useStyles();
  const problem = unavailable(cluster);
  if (problem) {
    return (
      <Alert severity="warning" title={problem} bottomSpacing={0}>
        {[cluster.problem || 'No successful read yet.', whyUnread(cluster, 'workers')].filter(Boolean).join('; ')}
      </Alert>
    );
  }
  const expected = target.deployment.workers;
  const reporting = workerCount(cluster);
  return (
    <>
      {expected !== undefined && reporting < expected && (
        <Alert severity="warning" title={`${reporting} of ${expected} workers report`} bottomSpacing={0}>
          Requests go to the remaining workers.
        </Alert>
      )}
      {cluster.all_workers && <div className={styles.note}>{aboutAll(cluster)}</div>}
      {cluster.problem && <div className={styles.note}>{cluster.problem}</div>}
    </>
  );
}

const useStyles = stylesOf((theme) => ({
  workers: { ...COLUMN, gap: theme.spacing(1) },
  cards: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(20em, 100%), 1fr))',
    gap: theme.spacing(1),
    ...PLAIN_LIST,
  },
  note: { ...theme.typography.bodySmall, color: theme.colors.text.secondary },
}));
