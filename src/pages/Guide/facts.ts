import { ofLane, type Baseline, type LaneSnapshot, type Live, type Settings } from '../../client';
import { recordedTable } from '../../lib/recorded';
import { sloLevel } from '../../lib/slo';
import { simulationNote, targetKind } from '../../lib/target';
import { hasTwin, TWIN } from '../lane';
import { columnFigures, liveFigures, prefixed, sloFigures, type Figures } from './figures';
import { recordedFigures } from './recorded';

/** The conditions that a paragraph may depend on. It is “known” where all figures that it quotes have a value. */
export const CONDITIONS = [
  'known',
  'running',
  'simulated',
  'calibrated',
  'not calibrated',
  'kv better',
  'kv worse',
  'no difference',
  'other deployment',
  'slo met',
  'slo missed',
  'own documents',
  'shared documents',
  'speculating',
  'aggregated',
  'disaggregated',
  'serving not known',
  'twin',
] as const;

export type Condition = (typeof CONDITIONS)[number];

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
    holds: new Set([...conditions(lane, settings), ...conditionIf('twin', hasTwin(live))]),
  };
}

function conditions(lane: LaneSnapshot | undefined, settings: Settings | undefined): Condition[] {
  if (!lane) {
    return [];
  }
  const isRunning = lane.state.phase === 'running';
  const isKV = lane.state.mode === 'kv';
  return [
    ...conditionIf('running', isRunning),
    ...conditionIf('simulated', targetKind(lane, undefined) === 'simulated'),
    ...simulation(lane.state),
    serving(lane),
    ...conditionIf('other deployment', lane.baseline.differences.length > 0),
    ...conditionIf('own documents', lane.state.shape.openings === 0),
    ...conditionIf('shared documents', (lane.state.shape.openings ?? 0) > 0),
    ...conditionIf('speculating', lane.state.speculation === 'draft' || lane.state.speculation === 'eagle3'),
    ...(isRunning && !lane.state.settling ? settledConditions(lane, settings, isKV) : []),
  ];
}

function conditionIf(condition: Condition, holds: boolean): Condition[] {
  return holds ? [condition] : [];
}

/**
 * Whether each worker handles a whole request. It comes from the configured deployment, because no metric reports it.
 */
function serving({ target }: LaneSnapshot): Condition {
  const { serving: configured } = target.deployment;
  return configured === 'aggregated' || configured === 'disaggregated' ? configured : 'serving not known';
}

/** A simulated cluster's timing fulfills no condition before the cluster reports its settings. */
function simulation(state: LaneSnapshot['state']): Condition[] {
  if (!state.simulation) {
    return [];
  }
  return [simulationNote(state) ? 'not calibrated' : 'calibrated'];
}

/** A step that has not settled fulfills no condition on measurements. */
function settledConditions(
  { baseline, window }: LaneSnapshot,
  settings: Settings | undefined,
  isKV: boolean
): Condition[] {
  // What the stage's sentence says of the recorded TTFT p95, which the texts quote.
  const recorded = baseline.headline?.lines.find((line) => line.against === 'recorded' && line.metric === 'ttft_p95');
  const kind = isKV ? recorded?.kind : undefined;
  const { ttft, tpot } = baseline.live;
  const slos = [
    sloLevel(ttft.p95, settings?.slo.ttft, ttft.p95_error, false, window.error_ratio),
    sloLevel(tpot.p95, settings?.slo.tpot, tpot.p95_error, true, window.error_ratio),
  ];
  return [
    ...conditionIf('kv better', kind === 'better'),
    ...conditionIf('kv worse', kind === 'worse'),
    ...conditionIf('no difference', kind === 'uncertain' || kind === 'same'),
    ...conditionIf('slo missed', slos.includes('missed')),
    ...conditionIf(
      'slo met',
      slos.every((slo) => slo === 'met' || slo === 'near')
    ),
  ];
}
