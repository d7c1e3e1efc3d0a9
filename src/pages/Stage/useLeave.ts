import { useEffect } from 'react';
import { useLocation, useNavigate } from 'react-router-dom';

import { useStable } from '../../lib/useStable';
import { usePagePath } from '../navigation';

/**
 * Returns a function that leaves the stage: to the page that opened it, else to the first one. In full screen, a
 * browser handles Escape itself, so leaving full screen leaves the stage, unless close reports that it closed
 * something.
 */
export function useLeave(close: () => boolean): () => void {
  const navigate = useNavigate();
  const pagePath = usePagePath();
  const { state } = useLocation();
  const from = originOf(state) ?? pagePath('');
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
        document.exitFullscreen().catch(() => undefined); // full screen has already ended
      }
    };
  }, [changed]);
  return leave;
}

function originOf(state: unknown): string | undefined {
  return typeof state === 'object' && state !== null && 'from' in state && typeof state.from === 'string'
    ? state.from
    : undefined;
}
