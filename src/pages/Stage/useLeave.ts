import { useEffect } from 'react';
import { useLocation, useNavigate } from 'react-router-dom';

import { useStable } from '../../lib/useStable';
import { usePagePath } from '../navigation';

/**
 * The way back from the stage: to the page that it was reached from, else to the first
 * one. In full screen a browser takes Escape for itself, so leaving that counts as
 * leaving, unless there was something to close, which close says.
 */
export function useLeave(close: () => boolean): () => void {
  const navigate = useNavigate();
  const pagePath = usePagePath();
  const { state } = useLocation();
  const from = cameFrom(state) ?? pagePath('');
  const leave = useStable(() => navigate(from));
  const changed = useStable(() => {
    if (!document.fullscreenElement && !close()) {
      leave();
    }
  });
  useEffect(() => {
    document.addEventListener('fullscreenchange', changed);
    return () => {
      document.removeEventListener('fullscreenchange', changed);
      if (document.fullscreenElement) {
        document.exitFullscreen().catch(() => undefined); // it has ended by itself
      }
    };
  }, [changed]);
  return leave;
}

function cameFrom(state: unknown): string | undefined {
  return typeof state === 'object' && state !== null && 'from' in state && typeof state.from === 'string'
    ? state.from
    : undefined;
}
