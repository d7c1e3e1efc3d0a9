import { useMemo } from 'react';

import { useLive, type Live } from '../../client';
import { lastSnapshot } from '../../lib/known';
import { LANE } from '../lane';

/** What stands above every page. */
export interface Booth {
  title: string;
  /** Empty where none is configured. */
  subtitle: string;
  live: Live;
}

/** What the booth is called while nothing is known of it. */
const NAME = 'KV Booth';

/** The booth's words as its settings give them, and its present moment. Titles outlive a loss. */
export function useBooth(): Booth {
  const live = useLive(LANE);
  const { state } = live;
  const settings = lastSnapshot(state)?.settings;
  const title = settings?.title || NAME;
  const subtitle = settings?.subtitle ?? '';
  return useMemo(() => ({ title, subtitle, live }), [title, subtitle, live]);
}
