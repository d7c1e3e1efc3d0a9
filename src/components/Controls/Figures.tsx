import { type LaneSnapshot, type State, workloadSettings } from '../../client';
import { DASH, milliseconds, number, percent, seconds } from '../../lib/format';
import { kindOf, levelText } from '../../lib/level';
import { cachesText, servingName, speculationName } from '../../lib/names';
import { Facts } from '../Facts';

interface FiguresProps {
  /** Undefined while nothing is known; every figure is then a dash. */
  lane?: LaneSnapshot;
  /** Includes the workload's settings, for users without the form that shows them. */
  withWorkload?: boolean;
}

/** The settings and the figures of the workload. */
export function Figures({ lane, withWorkload }: FiguresProps) {
  const figures = [...stateFigures(lane), ...(withWorkload ? workloadFigures(lane) : [])];
  return <Facts of={figures.map(([term, value]) => [term, value ?? DASH])} />;
}

type Figure = [term: string, value: string | undefined];

function stateFigures(lane?: LaneSnapshot): Figure[] {
  const state = lane?.state;
  return [
    ['Target', levelText(state?.concurrency.target)],
    ['Actual', number(state?.concurrency.actual)],
    ['Routing', state && routing(state)],
    ['Speculation', state && speculationName(state.speculation)],
    ['Waiting for first token', lane && waiting(lane)],
    ...(state?.caches ? [['Caches at the start', state.caches.state] satisfies Figure] : []),
    ...(lane && kindOf(lane.state.concurrency.target) === 'rate' ? rateFigures(lane) : []),
    ...(lane?.state.shape.traffic ? trafficFigures(lane) : []),
  ];
}

/** What is sent in place of conversations about texts, and how well it agrees with its plan. */
function trafficFigures({ state, window: { fidelity }, kv }: LaneSnapshot): Figure[] {
  const possible = fidelity?.theoretical_hit_ratio;
  return [
    ['Traffic', state.shape.traffic],
    [
      'Tokens of the plan',
      fidelity && `${percent(fidelity.input)} of the prompts, ${percent(fidelity.output)} of the answers`,
    ],
    ...(possible === undefined ? [] : [['Possible hit rate', percent(possible)] satisfies Figure]),
    [
      'Share of the achievable hit rate',
      kv.achieved_share === undefined && kv.achieved_share_unknown
        ? `not known: ${kv.achieved_share_unknown}`
        : percent(kv.achieved_share),
    ],
  ];
}

/** Whether turns are sent when they are to be sent, and whether all are. */
function rateFigures({ state, window: { late } }: LaneSnapshot): Figure[] {
  return [
    [
      'Sent late by',
      late && `${milliseconds(late.p50)} (p99 ${milliseconds(late.p99)}, ${percent(late.above)} above 50 ms)`,
    ],
    ['Dropped', number(state.concurrency.dropped ?? 0)],
  ];
}

function routing(state: State): string {
  const caches = cachesText(state);
  return caches ? `${servingName(state)}, ${caches}` : servingName(state);
}

function waiting({ window: { awaiting } }: LaneSnapshot): string {
  return awaiting.n === 0 ? '0' : `${number(awaiting.n)}, for up to ${seconds(awaiting.oldest_seconds)}`;
}

function workloadFigures(lane?: LaneSnapshot): Figure[] {
  if (!lane) {
    return [];
  }
  const { shape, concurrency, start_rate, target_rps, max_inflight } = lane.state;
  const { min, max } = shape.turns;
  const { openings, start_rate: rate, target_rps: cap } = workloadSettings;
  const texts: Figure[] = [
    ['Turns', min === max ? String(min) : `${min}–${max}`],
    [openings.label, shape.openings === 0 ? openings.zero : number(shape.openings)],
    [
      workloadSettings.opening_tokens.label,
      shape.opening_tokens === undefined ? '3,500–4,000 tokens' : `${number(shape.opening_tokens)} tokens`,
    ],
  ];
  const figures: Figure[] = [
    ...(shape.traffic ? [] : texts),
    [workloadSettings.max_tokens.label, `${number(shape.max_tokens)} tokens`],
  ];
  return kindOf(concurrency.target) === 'rate'
    ? [
        ...figures,
        [workloadSettings.arrivals.label, shape.arrivals],
        [workloadSettings.max_inflight.label, `up to ${number(max_inflight)}`],
      ]
    : [
        ...figures,
        [rate.label, `${start_rate} ${rate.unit}`],
        [cap.label, target_rps === 0 ? cap.zero : `${target_rps} ${cap.unit}`],
      ];
}
