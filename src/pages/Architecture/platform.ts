import type { LaneSnapshot } from '../../client';
import type { Rect, TargetFacts } from '../../components/Diagram';
import { DASH, number } from '../../lib/format';
import type { Platform } from '../../vendor';
import { requestPath, type Figure, type Part, type Presence } from './parts';

/** A group of the platform with its items, as parts of a drawing. */
export interface PlatformGroupParts {
  group: Part;
  items: Part[];
}

/**
 * Makes parts of the vendor's platform, each with its state under the running target. Items with the ids "gpu",
 * "operator", "grove", "scheduler", "monitoring" and "enduser" are looked up in the live state. The others count as
 * configured where the settings name a platform and the target can run on it.
 */
export function platformParts(
  platform: Platform,
  lane: LaneSnapshot | undefined,
  live: boolean,
  target: TargetFacts,
  named: boolean
): PlatformGroupParts[] {
  const path = requestPath(lane, live, target);
  const rest = platformPresence(lane, target, named);
  const known: Record<string, Presence | undefined> = {
    monitoring: monitoring(path.prometheus.presence),
    enduser: path.enduser.presence,
    grove: annotated(lane, 'grove'),
    scheduler: annotated(lane, 'kai'),
    operator:
      lane?.state.driver === 'kubernetes' ? { is: 'here', why: 'It switches the routing mode here.' } : undefined,
  };
  return platform.groups.map(({ items, ...group }) => {
    const parts = items.map((item) => ({
      ...item,
      id: `${group.id}.${item.id}`,
      figures: item.id === 'gpu' ? gpuFigures(live ? lane : undefined) : [],
      presence: known[item.id] ?? rest,
    }));
    const isPresent = parts.some((p) => p.presence.is === 'here');
    return { group: { ...group, figures: [], presence: isPresent ? { is: 'here' } : rest }, items: parts };
  });
}

/** Of the two, only Prometheus can be observed. */
function monitoring(prometheus: Presence): Presence {
  return prometheus.is === 'here'
    ? { is: 'here', why: 'The cluster’s numbers come from Prometheus here.' }
    : prometheus;
}

/** The deployment's own description of an item; undefined where it has none. */
function annotated(lane: LaneSnapshot | undefined, name: 'grove' | 'kai'): Presence | undefined {
  const found = lane?.target.features?.find((feature) => feature.name === name);
  return found && { is: found.in_use ? 'here' : 'absent', why: found.evidence };
}

/** Whether the target runs on the platform. It holds for each item that is not looked up. */
export function platformPresence(lane: LaneSnapshot | undefined, { kind }: TargetFacts, named: boolean): Presence {
  if (kind === 'simulated') {
    return { is: 'absent', why: 'The running cluster is simulated; it does not run on this platform.' };
  }
  if (kind === 'mock') {
    return {
      is: 'absent',
      why: 'The running Dynamo uses mock workers on one machine; it does not run on this platform.',
    };
  }
  const onKubernetes = lane?.state.driver === 'kubernetes';
  if (named && (onKubernetes || kind === 'dynamo')) {
    return {
      is: 'configured',
      why: 'Here, as configured: the setting “vendor” names this platform. It is not read from the cluster.',
    };
  }
  if (onKubernetes) {
    return {
      is: 'unknown',
      why: 'The target runs on Kubernetes; whether it uses this cannot be determined from here.',
    };
  }
  return { is: 'unknown', why: 'The target’s platform cannot be determined from here.' };
}

function gpuFigures(now: LaneSnapshot | undefined): Figure[] {
  const source = 'From the target’s metrics.';
  const gpus = now?.cluster.all_workers?.gpus ?? now?.cluster.workers.reduce((sum, w) => sum + w.gpus.length, 0);
  return [
    { name: 'GPUs', value: number(gpus), source },
    {
      name: 'kind',
      value: now?.target.deployment.gpu ?? now?.cluster.gpu ?? DASH,
      source: 'From the configured deployment.',
    },
  ];
}

/** The positions of a group and its items. */
interface PlacedGroup {
  rect: Rect;
  items: Rect[];
}

const COLUMNS = 3;
const WIDTH = 1000;
const GAP = 20;
const HEAD = 44;
const ITEM = { height: 58, gap: 10 };
const PADDING = 14;

/** Places groups with these numbers of items in columns, each below the shortest column so far. */
export function placeGroups(sizes: number[]): { width: number; height: number; groups: PlacedGroup[] } {
  const width = (WIDTH - (COLUMNS - 1) * GAP) / COLUMNS;
  const ends: number[] = new Array(COLUMNS).fill(0);
  const groups = sizes.map((n) => {
    const column = ends.indexOf(Math.min(...ends));
    const rect = {
      x: column * (width + GAP),
      y: ends[column],
      width,
      height: HEAD + n * (ITEM.height + ITEM.gap) + PADDING - ITEM.gap,
    };
    ends[column] += rect.height + GAP;
    const items = Array.from({ length: n }, (_, i) => ({
      x: rect.x + PADDING,
      y: rect.y + HEAD + i * (ITEM.height + ITEM.gap),
      width: width - 2 * PADDING,
      height: ITEM.height,
    }));
    return { rect, items };
  });
  return { width: WIDTH, height: Math.max(0, Math.max(...ends) - GAP), groups };
}
