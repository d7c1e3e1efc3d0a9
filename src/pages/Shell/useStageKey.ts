import { useLocation, useNavigate } from 'react-router-dom';

import { useKeys } from '../../lib/useKeys';
import { usePagePath } from '../navigation';

/** The page that a key leads to. */
const STAGE = 'stage';

/** Opens the stage view with the key S from every page, in full screen where the browser permits that. */
export function useStageKey() {
  const navigate = useNavigate();
  const { pathname, search } = useLocation();
  const stage = usePagePath()(STAGE);
  useKeys({
    s: () => {
      if (pathname !== stage) {
        // A browser permits it only while a key is being pressed, and not in every frame.
        document.documentElement.requestFullscreen?.().catch(() => undefined);
        navigate(stage, { state: { from: pathname + search } });
      }
    },
  });
}
