import { useEffect } from 'react';

import { kindOf, type Level, type LevelKind } from '../../lib/level';

/** The last level of each kind, by lane, until the page is loaded anew. */
const last = new Map<string, Partial<Record<LevelKind, Level>>>();

/** Remembers a lane's level, and returns a function to the last one of a kind. */
export function useLastLevels(lane: string, level: Level | undefined): (kind: LevelKind) => Level | undefined {
  useEffect(() => {
    if (level !== undefined) {
      last.set(lane, { ...last.get(lane), [kindOf(level)]: level });
    }
  }, [lane, level]);
  return (kind) => last.get(lane)?.[kind];
}
