import { vendor } from '../../../vendor';
import type { Figures } from '../figures';

const NVIDIA = 'NVIDIA Dynamo, A/B guide: Qwen3-32B, 8 workers, tool-agent trace';
const ANALYSIS = 'Analysis of the recorded runs on 3 × H200';
const LLMD = 'llm-d, “KV-cache wins you can see”';
const A10G = 'An independent run of llm-d on 8 × A10G';
const SIMULATOR = 'An independent simulator, in a regime like the booth’s';
const EXPECTED = 'What this demonstration expects; not measured';

const published = (value: string, source: string) => ({ value, word: 'published', source });
const example = (value: string) => ({ value, word: 'example' });

/**
 * Figures that this program does not measure: each with who published it. The
 * `ex` are those of the specification's worked example of the cost formula.
 */
export const publishedFigures: Figures = {
  'pub.nvidia.before': published('63,652 ms', NVIDIA),
  'pub.nvidia.after': published('2,586 ms', NVIDIA),
  'pub.llmd.faster': published('57 ×', LLMD),
  'pub.a10g.before': published('2,742 tokens/s', A10G),
  'pub.a10g.after': published('6,423 tokens/s', A10G),
  'pub.rejected': published('1 in 7', 'Counter-evidence: a KV router with rejection thresholds near saturation'),
  'pub.simulator.rr': published('91.1 %', SIMULATOR),
  'pub.simulator.least': published('94.2 %', SIMULATOR),
  'pub.simulator.prefix': published('94.9 %', SIMULATOR),
  'pub.acceptance.draft': { value: '55–70 %', word: 'expected', source: EXPECTED },
  'pub.acceptance.eagle3': { value: '70–85 %', word: 'expected', source: EXPECTED },
  'run.level': { value: '170', word: 'recorded', source: ANALYSIS },
  'run.spread.kv': { value: '28–32', word: 'recorded', source: ANALYSIS },
  'run.spread.rr': { value: '12–14', word: 'recorded', source: ANALYSIS },
  'ex.blocks': example('100'),
  'ex.cached': example('75'),
  'ex.busy': example('5'),
  'ex.cost': example('30'),
  'ex.other-cached': example('20'),
  'ex.other-busy': example('10'),
  'ex.other-cost': example('90'),
  ...Object.fromEntries(
    vendor.claims.map((claim) => [
      `claim.${claim.id}`,
      published(claim.value, vendor.sources.find((source) => source.id === claim.source)?.title ?? vendor.name),
    ])
  ),
};
