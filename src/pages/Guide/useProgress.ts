import { useCallback, useEffect, useState } from 'react';

import { lanePath, useClient, usePolled, type Baseline, type LiveState } from '../../client';
import { useStable } from '../../lib/useStable';
import { observe } from './progress';
import { restoreProgress, type LaneEvent } from './recall';
import { NO_PROGRESS, type Progress } from './seen';

/** The storage key of the progress, which lasts as long as the browser's tab. */
export const STORED = 'kvbooth.guide.progress.2';

/** The interval between requests for events, in milliseconds. */
const EVENTS_EVERY = 10_000;

/** The progress of the demonstration, and a function that resets it. */
export interface TrackedProgress {
  progress: Progress;
  reset(): void;
}

/** Updates the progress while the guide is open, and restores what happened while it was closed. */
export function useProgress(lane: string, baselines: Baseline[] | undefined): TrackedProgress {
  const client = useClient();
  const [progress, setProgress] = useState(restore);
  const loadEvents = () => client.get<{ events: LaneEvent[] }>(lanePath('/events', lane));
  const { value } = usePolled(loadEvents, EVENTS_EVERY, `events ${lane}`);
  const take = useStable((state: LiveState) => {
    if (state.status === 'live') {
      setProgress((before) =>
        restoreProgress(observe(before, state.snapshot, lane), value?.events ?? [], baselines ?? [])
      );
    }
  });
  useEffect(() => {
    const subscription = client.live(lane).subscribe(take);
    return () => subscription.unsubscribe();
  }, [client, lane, take]);
  useEffect(() => keep(progress), [progress]);
  const reset = useCallback(() => setProgress({ ...NO_PROGRESS, since: new Date().toISOString() }), []);
  return { progress, reset };
}

function restore(): Progress {
  try {
    const kept: unknown = JSON.parse(sessionStorage.getItem(STORED) ?? 'null');
    return isProgress(kept) ? kept : NO_PROGRESS;
  } catch {
    return NO_PROGRESS;
  }
}

function isProgress(value: unknown): value is Progress {
  return typeof value === 'object' && value !== null && 'settled' in value && 'errors' in value;
}

/** Where a browser forbids storage, the progress restarts with each visit. */
function keep(progress: Progress) {
  try {
    sessionStorage.setItem(STORED, JSON.stringify(progress));
  } catch {
    return;
  }
}
