import type { LaneSnapshot } from '../../client';
import { modeName, modeSource, speculationName } from '../../lib/names';
import type { TargetKind } from '../../lib/target';

/** What Dynamo offers. */
export type FeatureId = 'disaggregated' | 'kv-routing' | 'speculation' | 'kvbm' | 'planner' | 'nixl';

/** A figure that somebody has published. None of it was measured here. */
export interface Published {
  figure: string;
  source: string;
  /** Where it can be read; absent where it is not public. */
  url?: string;
}

/** One thing that Dynamo offers. */
export interface Feature {
  id: FeatureId;
  title: string;
  text: string;
  /** Empty where no published figure is known. */
  published: Published[];
}

/** Who quotes NVIDIA's benchmarks. */
const QUOTED = 'NVIDIA benchmarks, as quoted in the recorded deployment’s technical document';

/** What Dynamo offers, with what has been published of it. */
export const FEATURES: Feature[] = [
  {
    id: 'disaggregated',
    title: 'Disaggregated serving',
    text: 'Prefill computes a lot at once, decode waits for memory and must answer quickly. Put on workers of their own, neither holds the other up, and each can be tuned and scaled for itself.',
    published: [
      { figure: '30 % more throughput per GPU on one node, more than 2× on two nodes, Llama 70B', source: QUOTED },
    ],
  },
  {
    id: 'kv-routing',
    title: 'KV-aware routing',
    text: 'The router knows which worker holds which blocks, and sends a request where least is left to be computed, unless that worker is too busy. Nothing in the application changes.',
    published: [
      { figure: '3× better TTFT and half the average latency on 100,000 real R1 queries', source: QUOTED },
      {
        figure: 'Mean TTFT 63,652 → 2,586 ms, p99 332,974 → 17,871 ms; Qwen3-32B on 8 workers, a tool-agent trace',
        source: 'NVIDIA’s A/B guide',
      },
      {
        figure:
          'In a regime like this booth’s: hit rates of 91.1 % round-robin, 94.2 % least loaded, 94.9 % prefix-aware',
        source: 'Counter-evidence from an independent simulator',
      },
      {
        figure:
          'Near saturation, about 1 in 7 requests refused (503) where the router has rejection thresholds; no benefit where capacity is ample',
        source: 'Counter-evidence among the published results',
      },
    ],
  },
  {
    id: 'speculation',
    title: 'Speculative decoding',
    text: 'A pass of the large model costs nearly the same for one token as for a few. So something cheap guesses the next tokens, and one pass checks them: a small draft model, or EAGLE-3, a head on the large model’s own inner state. The text stays the same, only sooner. The engine does it; routing and speculation add up.',
    published: [
      {
        figure: 'Up to 3.6× the throughput with TensorRT-LLM',
        source: 'NVIDIA’s developer blog',
        url: 'https://developer.nvidia.com/blog/tensorrt-llm-speculative-decoding-boosts-inference-throughput-by-up-to-3-6x/',
      },
    ],
  },
  {
    id: 'kvbm',
    title: 'KV block manager',
    text: 'Blocks that no longer fit on the GPU move to main memory, to a local disk or to remote storage, and come back when a prompt needs them. What would have been computed again is read again.',
    published: [
      {
        figure: '2.2× to 12× better TTFT, depending on the request rate',
        source: 'Benchmarks quoted in the recorded deployment’s technical document, which does not name whose',
      },
    ],
  },
  {
    id: 'planner',
    title: 'Planner',
    text: 'Watches the load and adjusts how many workers prefill and decode, without an interruption: more prefill when prompts get longer, fewer workers when nobody asks.',
    published: [],
  },
  {
    id: 'nixl',
    title: 'NIXL',
    text: 'NVIDIA’s inference transfer library moves KV blocks from one memory to another, between machines too. Disaggregated serving needs it: a prompt’s blocks travel from the prefill worker to the decode worker.',
    published: [],
  },
];

/** Whether the running cluster uses something, and how that is known. */
export interface Usage {
  is: 'yes' | 'no' | 'unknown';
  why: string;
}

/** What is fixed in a cluster that this product starts itself: simulated, or Dynamo with mock workers. */
const ON_THIS_MACHINE: Record<Exclude<FeatureId, 'kv-routing' | 'speculation'>, string> = {
  disaggregated: 'Each of its workers prefills and decodes itself.',
  kvbm: 'Its workers imitate GPU memory only: a block that is evicted is gone.',
  planner: 'The number of its workers is fixed from the start.',
  nixl: 'No blocks travel between its workers.',
};

/** What the live state tells of a feature. Without a lane, nothing is known. */
export function usage(id: FeatureId, lane: LaneSnapshot | undefined, kind: TargetKind): Usage {
  if (!lane) {
    return { is: 'unknown', why: 'Nothing is known of the running cluster now.' };
  }
  if (!lane.target.reachable) {
    return { is: 'unknown', why: 'The target cannot be reached.' };
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
  return { is: 'unknown', why: 'The target does not tell.' };
}

function routing({ state }: LaneSnapshot, kind: TargetKind): Usage {
  const { mode } = state;
  if (mode === 'unknown') {
    return { is: 'unknown', why: 'Nobody has told the load generator which routing mode this server uses.' };
  }
  const told = `The routing mode is ${modeName(mode)}, as ${modeSource(state)} ${state.mode_from === 'metrics' ? 'tell' : 'tells'}`;
  if (mode !== 'kv') {
    return { is: 'no', why: `${told}.` };
  }
  if (kind === 'plain') {
    return { is: 'unknown', why: `${told}, but the target does not show a router.` };
  }
  return { is: 'yes', why: kind === 'simulated' ? `${told}; the cluster is simulated.` : `${told}.` };
}

function speculating({ state: { speculation, driver } }: LaneSnapshot, kind: TargetKind): Usage {
  if (speculation === 'not_recorded') {
    const why =
      kind === 'simulated'
        ? 'The simulated cluster imitates the recorded runs, of which nobody knows whether they speculated.'
        : 'Nobody has told the load generator whether the engines speculate.';
    return { is: 'unknown', why };
  }
  const told = `Speculation is “${speculationName(speculation)}”, as the mode driver “${driver}” tells`;
  const note = kind === 'simulated' && speculation !== 'off' ? '; the cluster is simulated, and its gain assumed' : '';
  return { is: speculation === 'off' ? 'no' : 'yes', why: `${told}${note}.` };
}
