import type { Vendor, VendorQuestion } from '../../../vendor';
import { quoted } from '../text';
import { sources as publicSources, type SourceId } from './links';
import { IN_DOCUMENTS } from './published';
import type { Question, QuestionGroup } from './types';

/** An answer of our own, and where to read on about it. */
type Own = Omit<Question, 'sources' | 'links'> & { readOn?: SourceId[] };

const demo: Own[] = [
  {
    id: 'running',
    question: 'What is running here?',
    words: ['workload', 'conversation', 'turns', 'load generator', 'end user', 'screen'],
    answer: [
      'A load generator holds conversations with the model, {live.concurrency} at once. Each begins with a long text, has {live.turns} turns and gets answers of at most {live.max-tokens} tokens. Opening texts in circulation: {live.openings}. When a conversation ends, another begins.',
      'Every turn sends the whole conversation again, so the input grows from turn to turn. An average request now has {live.prompt-tokens} of prompt and {live.output-tokens} of answer.',
      'The follow-up questions come from a small model in the role of the user, or from the load generator itself; the page “Architecture” says which. They are not part of what is measured.',
      'The screens show what is measured now beside what was recorded at the same concurrency in both modes. The slider changes the load while it runs.',
    ],
  },
  {
    id: 'rps-low',
    question: 'Why so few requests per second?',
    words: ['rps', 'throughput', 'slow', 'tokens'],
    answer: [
      'Because each one is large. An average request has {live.prompt-tokens} of prompt and {live.output-tokens} of answer, with a median latency of {live.latency.p50} end to end, and a worker answers {live.batch-limit} of them at once.',
      'Recorded: {rec.kv.rps} under KV-aware routing, {rec.rr.rps} under round-robin, with answers of {rec.output} and median latencies of {rec.latency}.',
      'Look at tokens instead: {live.tokens} now, at {live.rps}. The recorded peak is {rec.kv.peak} under KV-aware routing and {rec.rr.peak} under round-robin, on {rec.workers} workers.',
      'With short questions and short answers the same hardware would handle many more requests.',
    ],
  },
  {
    id: 'crossover',
    question: 'Why does round-robin win on TTFT when the load is highest?',
    words: ['crossover', 'worse', '180', 'queue', 'burst', 'p95'],
    answer: [
      'Well spotted, and we do not hide it. KV-aware routing has the higher recorded TTFT p95 at these numbers of conversations: {rec.worse-levels}. At {rec.top-level} it is {rec.kv.top-ttft} against {rec.rr.top-ttft}.',
      {
        when: 'kv worse',
        text: 'That is the case right now: TTFT p95 is {live.ttft.p95}, and round-robin has {here.rr.ttft.p95}. Say so before somebody else does.',
      },
      {
        when: 'kv better',
        text: 'Right now KV-aware routing is ahead: TTFT p95 is {live.ttft.p95}, and round-robin has {here.rr.ttft.p95}.',
      },
      {
        when: 'no difference',
        text: 'Right now it is not certain which is better: TTFT p95 is {live.ttft.p95}, and round-robin has {here.rr.ttft.p95}.',
      },
      'The cause is bunching. Conversations return to the worker that has them cached, sometimes several at once. Near the engine’s batch limit they queue, and queueing time is part of TTFT. In the recorded run at {rec.spread-level} conversations the busiest worker had {rec.kv.spread} more requests in flight than the least busy; under round-robin {rec.rr.spread}.',
      'Now the gap is {live.spread} requests, and {live.queued} are queued.',
      'Our simulation points to a second cause: to the router a first turn looks nearly free wherever its text is already cached, so new conversations pile up there.',
      'Everything except the first token stays better at the highest level: {rec.kv.top-tokens} against {rec.rr.top-tokens}, latency p95 {rec.kv.top-latency} against {rec.rr.top-latency}. A queue delays the beginning of an answer, not its pace, and the prefill that is saved leaves more time for decode.',
      'More workers do not move the crossover in our simulation, up to fifty of them with the recorded texts. It comes later only where the number of texts grows with the workers, as when more users bring more documents.',
    ],
  },
  {
    id: 'disaggregated',
    question: 'Is this disaggregated serving?',
    words: ['prefill', 'decode', 'aggregated', 'nixl', 'split'],
    readOn: ['architecture'],
    answer: [
      {
        when: 'aggregated',
        text: 'No. Every worker does both prefill and decode (aggregated serving), so what you see comes from routing alone.',
      },
      {
        when: 'disaggregated',
        text: 'Yes: prefill and decode run on separate workers here. What you see comes from that and from routing together.',
      },
      {
        when: 'serving not known',
        text: 'The load generator’s configuration does not say. If every worker does both prefill and decode (aggregated serving), the answer is no, and what you see comes from routing alone.',
      },
      'The recorded runs were aggregated.',
      'Dynamo can give prefill and decode separate pools of workers and transfers the KV cache with NIXL. The recorded deployment already has Grove and the KAI Scheduler for that next step.',
    ],
  },
  {
    id: 'model',
    question: 'Which model is it, and what does it run on?',
    words: ['llama', 'fp8', 'engine', 'tensorrt', 'vllm', 'gpu', 'quantised'],
    readOn: ['trtllm', 'speculation'],
    answer: [
      'Now: {live.model} on {live.engine}, {live.workers} workers, GPU {live.gpu}, speculation {live.speculation}.',
      {
        when: 'simulated',
        text: 'The cluster is simulated: no model runs, and the answers are canned text.',
      },
      {
        when: 'calibrated',
        text: 'Its timing follows a fit to the recorded runs.',
      },
      {
        when: 'not calibrated',
        text: 'With the current settings its timing follows assumptions, not a recorded run.',
      },
      'Recorded: {rec.model} on {rec.engine}, {rec.workers} workers, GPU {rec.gpu}, tensor parallelism {rec.tensor-parallel}. Whether speculation was enabled is not recorded.',
      'FP8 takes half the bytes of FP16 for weights and cache, so about twice as many conversations fit.',
      {
        when: 'other deployment',
        text: 'Live and recorded are different deployments. The comparison on the dashboard lists the differences.',
      },
    ],
  },
  {
    id: 'slos',
    question: 'Which SLOs do you use?',
    words: ['slo', 'sla', 'latency targets', 'ttft', 'tpot', 'objective', 'sustained'],
    answer: [
      'Two, for 95 of 100 requests: TTFT of at most {slo.ttft}, TPOT of at most {slo.tpot}. A value exactly at the SLO meets it.',
      'Now: TTFT p95 {live.ttft.p95}, TPOT p95 {live.tpot.p95}, at {live.concurrency} conversations.',
      { when: 'slo met', text: 'Both are met now.' },
      { when: 'slo missed', text: 'At least one is missed now, and the screens show it in red.' },
      'In the recorded runs both are met at every level up to {rec.kv.sustained} conversations under KV-aware routing and {rec.rr.sustained} under round-robin. Isolated levels above that which also pass do not count: {rec.kv.isolated} under KV-aware routing, {rec.rr.isolated} under round-robin.',
      'TPOT p95 over all recorded levels: {rec.kv.tpot} under KV-aware routing, {rec.rr.tpot} under round-robin.',
    ],
  },
  {
    id: 'benchmarks',
    question: 'How were the recorded figures made?',
    words: ['benchmark', 'method', 'sweep', 'warm-up', 'baseline', 'fair'],
    answer: [
      'The table’s own notes: {rec.notes}',
      'Between the two runs of a level only the router’s mode was changed. There are {rec.levels-count} levels, {rec.levels} conversations.',
      'Caveat: the program that recorded them ran five turns in every conversation and asked the same short sentence each time. The runs’ documents describe three to five turns with questions by a small model.',
      'Round-robin’s hit rate is not near zero, as is often claimed: {rec.rr.hit} recorded, against {rec.kv.hit}. Few starters are in use, and soon every worker has cached all of them.',
      {
        when: 'other deployment',
        text: 'What runs now differs from that. The comparison on the dashboard lists the differences.',
      },
    ],
  },
];

const technical: Own[] = [
  {
    id: 'router',
    question: 'How does the router decide where a request goes?',
    words: ['cost', 'radix', 'prefix tree', 'overlap', 'kv events', 'formula'],
    readOn: ['router', 'routing', 'event'],
    answer: [
      'Workers report every KV cache block that they store or drop. From these events the router keeps an index: a prefix tree that says which worker has which prefix cached.',
      'For each request it calculates a cost per worker: the blocks still to be computed, times a weight, plus the blocks already in use there. The lowest cost wins. A temperature above zero would add randomness.',
      'Example: of {ex.blocks} blocks one worker has {ex.cached} cached and {ex.busy} in use, cost {ex.cost}. Another has {ex.other-cached} cached and {ex.other-busy} in use, cost {ex.other-cost}. The first gets the request.',
      'Share of prompt tokens served from a cache: {live.hit} now. At this concurrency {here.kv.hit} under KV-aware routing, {here.rr.hit} under round-robin.',
    ],
  },
  {
    id: 'grove',
    question: 'What is Grove for?',
    words: ['kai', 'scheduler', 'gang', 'podclique', 'kubernetes', 'operator'],
    readOn: ['architecture'],
    answer: [
      'Grove is NVIDIA’s addition to Kubernetes for inference. It groups pods by role into PodCliques, starts them in order, and scales related pods together. With the KAI Scheduler a group gets all of its GPUs or none. It scales at three levels, pods, PodCliques and groups of these, which Dynamo’s planner can set.',
      'Aggregated serving does not need it: each worker is independent. It matters once prefill and decode are separated, because half a group that holds GPUs and waits for the rest blocks everybody.',
      {
        when: 'simulated',
        text: 'The cluster on this screen is simulated and does not run on Kubernetes, so there is no Grove either.',
      },
    ],
  },
];

/** The three groups of the booth guide; what is the vendor's to answer comes from its file. */
export function questionGroups(from: Vendor): QuestionGroup[] {
  const theirs = (list: VendorQuestion[]) => list.map((question) => toQuestion(question, from));
  const own = (list: Own[]) =>
    list.map(({ readOn = [], ...question }) => ({
      ...question,
      sources: [],
      links: readOn.map((id) => publicSources[id]),
    }));
  return [
    { id: 'demo', title: 'About the demonstration', questions: own(demo) },
    { id: 'platform', title: `About ${from.name}`, questions: theirs(from.questions) },
    { id: 'technical', title: 'Technical questions', questions: [...own(technical), ...theirs(from.technical)] },
  ];
}

/** Stands below an answer with figures of the vendor's. */
const CHECK = `Check these figures before the event. Those marked “${IN_DOCUMENTS}” have no public source.`;

function toQuestion({ answer, sources, links, ...question }: VendorQuestion, from: Vendor): Question {
  const hasClaims = answer.flatMap(quoted).some((name) => name.startsWith('claim.'));
  return {
    ...question,
    answer: hasClaims ? [...answer, CHECK] : answer,
    sources: from.sources.filter((source) => sources.includes(source.id)),
    links: from.links.filter((link) => links.includes(link.id)),
  };
}
