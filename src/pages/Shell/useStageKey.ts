import { useLocation, useNavigate } from 'react-router-dom';

import { useKeys } from '../../lib/useKeys';
import { usePagePath } from '../navigation';

/** The page that a key opens. */
const STAGE = 'stage';

/** Opens the stage view with the key S from every page, in full screen where the browser permits that. */
export function useStageKey() {
  const navigate = useNavigate();
  const { pathname, search } = useLocation();
  const pagePath = usePagePath();
  const stage = pagePath(STAGE);
  useKeys({
    s: () => {
      if (pathname !== stage) {
        // A browser permits it only during a key press, and not in every frame.
        document.documentElement.requestFullscreen?.().catch(() => undefined);
        navigate(stage, { state: { from: pathname + search } });
      }
    },
  });
}
