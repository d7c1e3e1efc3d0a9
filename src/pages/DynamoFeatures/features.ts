import type { LaneSnapshot } from '../../client';
import { percent } from '../../lib/format';
import { modeName, modeSource, speculationName } from '../../lib/names';
import { targetTrouble, type TargetKind } from '../../lib/target';
import file from './features.json';

/** A feature of Dynamo. */
export type FeatureId = 'disaggregated' | 'kv-routing' | 'speculation' | 'kvbm' | 'planner' | 'nixl';

/** A published figure. It was not measured here. */
interface Published {
  figure: string;
  source: string;
  /** The address of the publication; absent where it is not public. */
  url?: string;
}

/** One feature of Dynamo. */
export interface Feature {
  id: FeatureId;
  title: string;
  text: string;
  /** Empty where no published figure is known. */
  published: Published[];
}

/** The features of Dynamo with their published figures, which were not measured here. */
export const FEATURES = file as Feature[];

/** Whether the running cluster uses a feature, with the source of that state. */
export interface Usage {
  is: 'yes' | 'no' | 'unknown';
  why: string;
}

/** The fixed features of a cluster that this product starts itself: simulated, or Dynamo with mock workers. */
const ON_THIS_MACHINE: Record<Exclude<FeatureId, 'kv-routing' | 'speculation'>, string> = {
  disaggregated: 'Each of its workers does both prefill and decode.',
  kvbm: 'Its workers simulate GPU memory only: an evicted block is gone.',
  planner: 'The number of workers is fixed at start-up.',
  nixl: 'No blocks move between its workers.',
};

/** Returns the state of a feature from the live state. Without a lane it is unknown. */
export function usage(id: FeatureId, lane: LaneSnapshot | undefined, kind: TargetKind): Usage {
  if (!lane) {
    return { is: 'unknown', why: 'No current data on the running cluster.' };
  }
  const trouble = lane.target.reachable ? undefined : targetTrouble(lane);
  if (trouble) {
    return { is: 'unknown', why: `${trouble.title}.` };
  }
  if (id === 'kv-routing') {
    return routing(lane, kind);
  }
  if (id === 'speculation') {
    return speculating(lane, kind);
  }
  if (kind === 'simulated' || kind === 'mock') {
    const what = kind === 'simulated' ? 'The cluster is simulated.' : 'The workers are mocks.';
    return { is: 'no', why: `${what} ${ON_THIS_MACHINE[id]}` };
  }
  const { serving } = lane.target.deployment;
  if (id === 'disaggregated' && serving === 'aggregated') {
    return { is: 'no', why: 'The deployment is configured as aggregated: each worker does both prefill and decode.' };
  }
  if (id === 'disaggregated' && serving === 'disaggregated') {
    return { is: 'yes', why: 'The deployment is configured as disaggregated.' };
  }
  const reported = lane.target.features?.find(({ name }) => name === id);
  if (reported) {
    return { is: reported.in_use ? 'yes' : 'no', why: reported.evidence };
  }
  return { is: 'unknown', why: 'The target does not report it.' };
}

function routing({ state }: LaneSnapshot, kind: TargetKind): Usage {
  const { mode } = state;
  if (mode === 'unknown') {
    return { is: 'unknown', why: 'The routing mode of this server has not been set.' };
  }
  const verb = state.mode_from === 'metrics' ? 'report' : 'reports';
  const reason = `The routing mode is ${modeName(mode)}, as ${modeSource(state)} ${verb}`;
  if (mode !== 'kv') {
    return { is: 'no', why: `${reason}.` };
  }
  if (kind === 'plain') {
    return { is: 'unknown', why: `${reason}, but the target does not expose a router.` };
  }
  return { is: 'yes', why: kind === 'simulated' ? `${reason}; the cluster is simulated.` : `${reason}.` };
}

function speculating({ state: { speculation, driver }, cluster }: LaneSnapshot, kind: TargetKind): Usage {
  const { acceptance } = cluster.speculation ?? {};
  if (speculation === 'not_recorded' && acceptance !== undefined) {
    const note = kind === 'simulated' ? ' The cluster is simulated; the recorded runs may not have speculated.' : '';
    return {
      is: 'yes',
      why: `The engines report that ${percent(acceptance)} of the drafted tokens are accepted.${note}`,
    };
  }
  if (speculation === 'not_recorded') {
    const why =
      kind === 'simulated'
        ? 'The simulated cluster follows the recorded runs; whether they used speculation is not recorded.'
        : 'Whether the engines use speculation has not been configured.';
    return { is: 'unknown', why };
  }
  const reason = `Speculation is “${speculationName(speculation)}”, as the mode driver “${driver}” reports`;
  const note = kind === 'simulated' && speculation !== 'off' ? '; the cluster is simulated, and its gain assumed' : '';
  return { is: speculation === 'off' ? 'no' : 'yes', why: `${reason}${note}.` };
}
