import { useLocation, useNavigate } from 'react-router-dom';

import { useKeys } from '../../lib/useKeys';
import { usePagePath } from '../navigation';

/** The page that a key leads to. */
const STAGE = 'stage';

/** The page of both routers, of which the stage has a view. */
const BOTH = 'side-by-side';

/** Opens the stage view with the key S from every page, in full screen where the browser permits that. */
export function useStageKey() {
  const navigate = useNavigate();
  const { pathname, search } = useLocation();
  const pagePath = usePagePath();
  const stage = pagePath(STAGE);
  const view = pathname === pagePath(BOTH) ? '?view=both' : '';
  useKeys({
    s: () => {
      if (pathname !== stage) {
        // A browser permits it only while a key is being pressed, and not in every frame.
        document.documentElement.requestFullscreen?.().catch(() => undefined);
        navigate(stage + view, { state: { from: pathname + search } });
      }
    },
  });
}
