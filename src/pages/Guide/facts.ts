import { ofLane, type Baseline, type HeadlineKind, type LaneSnapshot, type Live, type Settings } from '../../client';
import { recordedTable } from '../../lib/recorded';
import { sloLevel } from '../../lib/slo';
import { simulationNote, targetKind } from '../../lib/target';
import { hasTwin, TWIN } from '../lane';
import { columnFigures, liveFigures, prefixed, sloFigures, type Figures } from './figures';
import { recordedFigures } from './recorded';

/** The conditions that depend on a lane. A step that has not settled fulfills none on measurements. */
const conditions = {
  running: ({ state }) => state.phase === 'running',
  simulated: (lane) => targetKind(lane, undefined) === 'simulated',
  // A simulated cluster's timing fulfills no condition before the cluster reports its settings.
  calibrated: ({ state }) => state.simulation !== undefined && !simulationNote(state),
  'not calibrated': ({ state }) => simulationNote(state) !== undefined,
  'kv better': (lane) => outcomeOf(lane) === 'better',
  'kv worse': (lane) => outcomeOf(lane) === 'worse',
  'no difference': (lane) => ['uncertain', 'same'].includes(outcomeOf(lane) ?? ''),
  'other deployment': ({ baseline }) => baseline.differences.length > 0,
  'slo met': (lane, settings) => slosOf(lane, settings).every((slo) => slo === 'met' || slo === 'near'),
  'slo missed': (lane, settings) => slosOf(lane, settings).includes('missed'),
  'own documents': ({ state }) => state.shape.openings === 0,
  'shared documents': ({ state }) => (state.shape.openings ?? 0) > 0,
  speculating: ({ state }) => state.speculation === 'draft' || state.speculation === 'eagle3',
  // Whether each worker handles a whole request comes from the configured deployment, because no metric reports it.
  aggregated: ({ target }) => target.deployment.serving === 'aggregated',
  disaggregated: ({ target }) => target.deployment.serving === 'disaggregated',
  'serving not known': ({ target }) => !['aggregated', 'disaggregated'].includes(target.deployment.serving ?? ''),
} satisfies Record<string, (lane: LaneSnapshot, settings: Settings | undefined) => boolean>;

type LaneCondition = keyof typeof conditions;

/** A condition that a paragraph may depend on. It is “known” where all figures that it quotes have a value. */
export type Condition = LaneCondition | 'known' | 'twin';

/** All conditions. */
export const CONDITIONS: Condition[] = [...(Object.keys(conditions) as LaneCondition[]), 'known', 'twin'];

/** All facts that texts quote, computed anew with each snapshot. */
export interface Facts {
  figures: Figures;
  holds: ReadonlySet<Condition>;
}

interface Input {
  live: Live;
  baselines: Baseline[] | undefined;
  /** The published figures, which do not change. */
  published?: Figures;
}

/** The live figures, those recorded at this concurrency (`here`), and those of the recorded table. */
export function buildFacts({ live, baselines, published = {} }: Input): Facts {
  const lane = live.lane;
  const settings = live.state.status === 'live' ? live.state.snapshot.settings : undefined;
  return {
    figures: {
      ...published,
      ...prefixed('slo', sloFigures(settings)),
      ...prefixed('live', liveFigures(live)),
      ...prefixed('twin', liveFigures(ofLane(live, TWIN))),
      ...prefixed('here.rr', columnFigures(lane, 'round_robin')),
      ...prefixed('here.kv', columnFigures(lane, 'kv')),
      ...recordedFigures(recordedTable(baselines, lane)),
    },
    holds: new Set(CONDITIONS.filter((one) => holds(one, live, settings))),
  };
}

function holds(condition: Condition, live: Live, settings: Settings | undefined): boolean {
  if (condition === 'twin') {
    return hasTwin(live);
  }
  if (condition === 'known' || !live.lane) {
    return false;
  }
  const test: (lane: LaneSnapshot, settings: Settings | undefined) => boolean = conditions[condition];
  return test(live.lane, settings);
}

function isSettled({ state }: LaneSnapshot): boolean {
  return state.phase === 'running' && !state.settling;
}

/** What the stage's sentence says of the recorded TTFT p95, which the texts quote. */
function outcomeOf(lane: LaneSnapshot): HeadlineKind | undefined {
  const lines = isSettled(lane) && lane.state.mode === 'kv' ? (lane.baseline.headline?.lines ?? []) : [];
  return lines.find(({ against, metric }) => against === 'recorded' && metric === 'ttft_p95')?.kind;
}

function slosOf(lane: LaneSnapshot, settings: Settings | undefined) {
  const { ttft, tpot } = lane.baseline.live;
  const { error_ratio } = lane.window;
  return isSettled(lane)
    ? [
        sloLevel(ttft.p95, settings?.slo.ttft, ttft.p95_error, false, error_ratio),
        sloLevel(tpot.p95, settings?.slo.tpot, tpot.p95_error, true, error_ratio),
      ]
    : [undefined];
}
