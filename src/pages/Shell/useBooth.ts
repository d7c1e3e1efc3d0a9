import { useMemo } from 'react';

import { useLive, type Live } from '../../client';
import { lastSnapshot } from '../../lib/known';
import { LANE } from '../lane';

/** The content above every page. */
export interface Booth {
  title: string;
  /** Empty where none is configured. */
  subtitle: string;
  live: Live;
}

/** The title before the settings are known. */
const NAME = 'KV Booth';

/** Returns the booth's titles from its settings, and the live state. Titles are kept during a loss. */
export function useBooth(): Booth {
  const live = useLive(LANE);
  const { state } = live;
  const settings = lastSnapshot(state)?.settings;
  const title = settings?.title || NAME;
  const subtitle = settings?.subtitle ?? '';
  return useMemo(() => ({ title, subtitle, live }), [title, subtitle, live]);
}
