import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';

/** For words that are heard but not seen. */
export const visuallyHidden = css({
  position: 'absolute',
  width: 1,
  height: 1,
  margin: -1,
  overflow: 'hidden',
  clipPath: 'inset(50%)',
  whiteSpace: 'nowrap',
});

/** The colours of how a value stands to its objective, and to another value. */
export const verdicts = ({ colors: { success, warning, error, text } }: GrafanaTheme2) => ({
  met: { color: success.text },
  near: { color: warning.text },
  missed: { color: error.text },
  better: { color: success.text },
  worse: { color: error.text },
  same: { color: text.secondary },
});
