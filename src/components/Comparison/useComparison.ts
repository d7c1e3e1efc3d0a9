import { useEffect, useState } from 'react';
import { catchError, defer, exhaustMap, map, of, timer } from 'rxjs';

import { asProblem, compareWith, useClient, type Comparison, type LaneSnapshot } from '../../client';

/** How often a comparison of one's own choice is asked for, in milliseconds. */
export const COMPARE_EVERY = 1000;

/** A comparison, and what went wrong with the last question for it. */
export interface Compared {
  comparison?: Comparison;
  problem?: string;
}

/**
 * The comparison with a baseline of one's choice, asked for every second while
 * live; without a choice, the one that the snapshot holds.
 */
export function useComparison(lane: LaneSnapshot | undefined, live: boolean, baseline: string): Compared {
  const client = useClient();
  const [asked, setAsked] = useState<Compared & { of: string }>();
  const name = lane?.name;
  const inSnapshot = baseline === '' || baseline === lane?.baseline.name;
  const polls = name !== undefined && live && !inSnapshot;
  const key = `${name}/${baseline}`;
  useEffect(() => {
    if (!polls) {
      return undefined;
    }
    const answers = timer(0, COMPARE_EVERY).pipe(
      exhaustMap(() =>
        defer(() => compareWith(client, name, baseline)).pipe(
          map((comparison): Compared => ({ comparison, problem: undefined })),
          catchError((error: unknown) => of<Compared>({ problem: asProblem(error).message }))
        )
      )
    );
    const subscription = answers.subscribe((answer) =>
      setAsked((before) => ({ ...(before?.of === key && { comparison: before.comparison }), of: key, ...answer }))
    );
    return () => subscription.unsubscribe();
  }, [client, name, baseline, polls, key]);
  if (inSnapshot) {
    return { comparison: lane?.baseline };
  }
  return asked?.of === key ? asked : {};
}
