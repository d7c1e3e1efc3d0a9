import type { Baseline, BoothEvent } from '../../client';
import { modeNamed } from '../../lib/names';
import { change, raisedConcurrency } from './progress';
import { isSame, settledKey, type Progress } from './seen';

/** One of the load generator's events. */
export type LaneEvent = Pick<BoothEvent, 'id' | 'time' | 'text'> & { kind: string };

const RUN = /^(?:step \d+: )?(\d+) conversations, (.+)$/;
const CHANGE = /^(.+?) to (.+?)(?:: the cluster is in that mode)?$/;
/** The suffix of a mode in an event. */
const SPECULATION = /(\/\w+| with .+)$/;

/**
 * Adds what happened while the guide was closed: events, newest first as the API returns them, and measured steps of
 * this target.
 */
export function restoreProgress(before: Progress, events: LaneEvent[], baselines: Baseline[]): Progress {
  const { since } = before;
  if (since === undefined) {
    return before;
  }
  const isNew = (time: string | undefined) => time !== undefined && Date.parse(time) >= Date.parse(since);
  const happened = events.filter((event) => isNew(event.time)).reverse();
  const withEvents = happened.reduce(recallEvent, before);
  const rows = baselines.filter((baseline) => baseline.kind === 'measured').flatMap((baseline) => baseline.rows);
  const next = rows.filter((row) => isNew(row.measured)).reduce(recallRow, withEvents);
  return isSame(before, next) ? before : next;
}

function recallEvent(before: Progress, { time, kind, text }: LaneEvent): Progress {
  const run = kind === 'start' || kind === 'step' ? RUN.exec(text) : null;
  const mode = run && modeNamed(run[2]);
  if (run && mode) {
    const concurrency = Number(run[1]);
    const next = {
      started: before.started ?? { at: time, concurrency, mode },
      ...raisedConcurrency(before, concurrency, time),
    };
    return { ...before, ...next };
  }
  const switched = kind === 'mode_change' ? CHANGE.exec(text) : null;
  const [from, to] = switched?.slice(1).map((words) => modeNamed(words.replace(SPECULATION, ''))) ?? [];
  return from && to ? { ...before, ...change(before, from, to, time) } : before;
}

function recallRow(before: Progress, row: Baseline['rows'][number]): Progress {
  const key = settledKey(row, row.concurrency);
  if (before.settled[key] || row.measured === undefined) {
    return before;
  }
  const figures = {
    at: row.measured,
    concurrency: row.concurrency,
    ttft: row.ttft.p95,
    interval: row.intervals?.ttft.p95,
    hit: row.kv_hit_ratio,
    itl: row.itl.p50,
    tokens: row.output_tokens_per_second,
  };
  return { ...before, settled: { ...before.settled, [key]: figures } };
}
