import { RadioButtonGroup } from '@grafana/ui';

import { useBaselines, useLive, type Live, type Problem } from '../../client';
import { DeploymentTable } from '../../components/Deployment';
import { useReducedMotion, useTarget } from '../../components/Diagram';
import { Loading } from '../../components/Loading';
import { Section } from '../../components/Section';
import { lastKnown } from '../../lib/known';
import { recordedTable } from '../../lib/recorded';
import { COLUMN, stylesOf, WRAP } from '../../lib/styles';
import { targetNotes } from '../../lib/target';
import { aboutAll } from '../../lib/workers';
import { NEUTRAL, useVendor, type Platform } from '../../vendor';
import { LANE } from '../lane';
import { useChoice } from '../useChoice';
import { Legend } from './Legend';
import { PartList } from './PartList';
import { PartPanel } from './PartPanel';
import { PlatformLayer } from './PlatformLayer';
import { RequestLayer } from './RequestLayer';
import { useFlow } from './flow';
import { inOrder, presenceWord, requestPath, type Part } from './parts';
import { platformParts, platformPresence } from './platform';

type Layer = 'request' | 'platform';

const layers = [
  { label: 'Request path', value: 'request' as const },
  { label: 'Platform', value: 'platform' as const },
];

const NO_WORKERS: never[] = [];

/** The architecture page: a drawing of the running parts with their numbers. */
export default function Architecture() {
  const [chosen, choose] = useChoice('layer');
  const layer: Layer = chosen === 'platform' ? chosen : 'request';
  const { value: vendor, problem } = useVendor(LANE);
  const platform = vendor?.platform;
  const styles = useStyles();
  return (
    <div className={styles.page}>
      <Section
        title={layer === 'request' ? 'Request path' : (platform?.name ?? 'Platform')}
        info={
          'Every part of the running system with its live numbers; select one for details. Rates ' +
          'are measured by the load generator; cluster numbers come from the cluster’s own metrics.'
        }
        actions={
          <RadioButtonGroup
            aria-label="Layer"
            options={layers}
            value={layer}
            onChange={(next) => choose(next === 'request' ? undefined : next)}
          />
        }
      >
        {layer === 'request' ? (
          <Drawing />
        ) : platform ? (
          <Drawing platform={platform} />
        ) : (
          <PlatformMissing problem={problem} />
        )}
      </Section>
      <Section
        title="Deployment"
        info={
          'The live deployment next to the one the results were recorded on. The live side comes ' +
          'from the load generator’s configuration and the cluster’s metrics; the recorded side ' +
          'comes from the documentation of that run.'
        }
      >
        <Deployments />
      </Section>
    </div>
  );
}

function PlatformMissing({ problem }: { problem: Problem | undefined }) {
  return problem ? (
    <p>The platform diagram failed to load; retrying every few seconds. {problem.message}</p>
  ) : (
    <Loading text="Loading the platform diagram…" />
  );
}

function Deployments() {
  const live = useLive(LANE);
  const known = lastKnown(live, LANE);
  const { value: baselines, problem } = useBaselines(known?.settings.slo);
  if (!baselines && problem) {
    return <p>The recorded deployment could not be loaded. {problem.message}</p>;
  }
  return <DeploymentTable live={known?.lane.target.deployment} recorded={recordedTable(baselines, known?.lane)} />;
}

interface DrawingProps {
  /** What replaces the drawing of the request path. */
  platform?: Platform;
}

/** All that changes with a snapshot. The frame around it is not rendered again each second. */
function Drawing({ platform }: DrawingProps) {
  const styles = useStyles();
  const live = useLive(LANE);
  const known = lastKnown(live, LANE);
  const target = useTarget(live, LANE);
  const [selected = 'router', onSelect] = useChoice('part');
  const still = useStillness(live);
  const shares = useFlow(live.lane?.cluster.workers ?? NO_WORKERS, live.lane && known?.time);
  if (live.state.status === 'loading') {
    return <Loading text="Waiting for the first snapshot…" />;
  }
  const facts = [known?.lane, live.lane !== undefined, target] as const;
  const path = platform ? undefined : requestPath(...facts);
  const named = known !== undefined && known.settings.vendor !== NEUTRAL;
  const groups = platform ? platformParts(platform, ...facts, named) : [];
  const rest = platformPresence(known?.lane, target, named);
  const parts = path ? inOrder(path) : groups.flatMap(({ group, items }) => [group, ...items]);
  const note = platform ? platform.text : targetNotes[target.kind];
  const requestsPerSecond = live.lane?.window.requests_per_second ?? 0;
  return (
    <>
      {note && <p className={styles.note}>{note}</p>}
      {platform && (
        <p className={styles.note}>
          {rest.is !== 'configured' && <b>Dashed: {presenceWord(rest)}. </b>}
          {rest.why}
        </p>
      )}
      {path && live.lane?.cluster.all_workers && <p className={styles.note}>{aboutAll(live.lane.cluster)}</p>}
      <div className={styles.row}>
        <div className={styles.drawing}>
          {path ? (
            <RequestLayer
              path={path}
              missing={known?.lane.cluster.problem}
              traffic={still ? undefined : { requestsPerSecond, shares }}
              selected={selected}
              onSelect={onSelect}
            />
          ) : (
            <PlatformLayer groups={groups} rest={rest} selected={selected} onSelect={onSelect} />
          )}
          {path && <Legend still={still} />}
          <PartList parts={parts} />
        </div>
        <PartPanel part={chosen(parts, selected)} />
      </div>
    </>
  );
}

/** Selects the first part where the chosen one, such as a worker, no longer exists. */
function chosen(parts: Part[], id: string): Part {
  return parts.find((p) => p.id === id) ?? parts[0];
}

/** Returns why nothing moves in the drawing; undefined while requests are drawn. */
function useStillness({ state, lane }: Live): string | undefined {
  const reduced = useReducedMotion();
  if (state.status !== 'live' || !lane) {
    return 'Animation paused: no live data.';
  }
  if (!lane.state.running) {
    return 'Animation paused: the workload is stopped.';
  }
  return reduced ? 'Animation disabled: your system is set to reduce motion.' : undefined;
}

const useStyles = stylesOf((theme) => ({
  page: { ...COLUMN, gap: theme.spacing(2) },
  note: { color: theme.colors.text.secondary, marginBottom: theme.spacing(1) },
  row: { ...WRAP, alignItems: 'flex-start', gap: theme.spacing(2) },
  drawing: { flex: '4 1 800px', minWidth: 0 },
}));
