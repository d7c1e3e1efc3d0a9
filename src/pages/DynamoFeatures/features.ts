import type { LaneSnapshot } from '../../client';
import { percent } from '../../lib/format';
import { modeName, modeSource, speculationName } from '../../lib/names';
import { targetTrouble, type TargetKind } from '../../lib/target';

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

/** The source that quotes NVIDIA's benchmarks. */
const QUOTED = 'NVIDIA benchmarks, quoted by the operators of the recorded deployment';

/** The features of Dynamo with their published figures. */
export const FEATURES: Feature[] = [
  {
    id: 'disaggregated',
    title: 'Disaggregated serving',
    text:
      'Prefill is compute-bound, decode is memory-bound and latency-sensitive. On separate ' +
      'workers neither blocks the other, and each can be tuned and scaled on its own.',
    published: [
      { figure: '30 % more throughput per GPU on one node, more than 2× on two nodes, Llama 70B', source: QUOTED },
    ],
  },
  {
    id: 'kv-routing',
    title: 'KV-aware routing',
    text:
      'The router knows which worker has which blocks and sends a request where the least ' +
      'remains to be computed, unless that worker is too busy. The application does not change.',
    published: [
      { figure: '3× better TTFT and half the average latency on 100,000 real R1 queries', source: QUOTED },
      {
        figure: 'Mean TTFT 63,652 → 2,586 ms, p99 332,974 → 17,871 ms; Qwen3-32B on 8 workers, a tool-agent trace',
        source: 'NVIDIA’s A/B guide',
      },
      {
        figure:
          'Under conditions similar to this booth’s: hit rates of 91.1 % round-robin, 94.2 % least ' +
          'loaded, 94.9 % prefix-aware',
        source: 'Counter-evidence from an independent simulator',
      },
      {
        figure:
          'Near saturation, about 1 in 7 requests refused (503) where the router has rejection ' +
          'thresholds; no benefit where capacity is ample',
        source: 'Counter-evidence among the published results',
      },
    ],
  },
  {
    id: 'speculation',
    title: 'Speculative decoding',
    text:
      'One pass of the large model costs nearly the same for one token as for a few. So a ' +
      'cheap drafter guesses the next tokens, and one pass of the large model verifies them. ' +
      'The drafter is a small model, or EAGLE-3, a prediction head on the large model’s hidden ' +
      'states. The output is the same, only faster. The engine does this; the gains of routing ' +
      'and speculation add up.',
    published: [
      {
        figure: '55–70 % of the tokens of a draft model are accepted, 70–85 % with EAGLE-3, depending on the texts',
        source: 'Expected in the proposal of this demo, not measured',
      },
      {
        figure: 'Up to 3.6× the throughput with TensorRT-LLM',
        source: 'NVIDIA’s developer blog',
        url:
          'https://developer.nvidia.com/blog/' +
          'tensorrt-llm-speculative-decoding-boosts-inference-throughput-by-up-to-3-6x/',
      },
    ],
  },
  {
    id: 'kvbm',
    title: 'KV block manager',
    text:
      'Blocks that no longer fit on the GPU move to main memory, local disk or remote storage, ' +
      'and come back when a prompt needs them. They are read back instead of recomputed.',
    published: [
      {
        figure: '2.2× to 12× better TTFT, depending on the request rate',
        source: 'Quoted by the operators of the recorded deployment, without a source',
      },
    ],
  },
  {
    id: 'planner',
    title: 'Planner',
    text:
      'Watches the load and adjusts the number of prefill and decode workers without ' +
      'interruption: more prefill when prompts get longer, fewer workers when idle.',
    published: [],
  },
  {
    id: 'nixl',
    title: 'NIXL',
    text:
      'NVIDIA’s inference transfer library moves KV blocks between memories, also across ' +
      'machines. Disaggregated serving needs it: a prompt’s blocks move from the prefill ' +
      'worker to the decode worker.',
    published: [],
  },
];

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
