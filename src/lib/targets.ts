import { css } from '@emotion/css';

/** The least size of what is touched, in pixels. */
const TOUCH = 44;

/** The width up to which a screen is a phone's. */
const PHONE = '@media (max-width: 600px)';

const touched = { minHeight: TOUCH, minWidth: TOUCH };

/** Makes what can be pressed on a page large enough for a finger, where the page is on a phone. */
export const touchTargets = css({
  [PHONE]: {
    '& button, & summary, & select': touched,
    '& [data-testid="input-wrapper"], & [data-testid="input-wrapper"] input': { height: TOUCH },
    '& [role="radiogroup"] label': { ...touched, display: 'inline-flex', alignItems: 'center' },
    '& [role="radiogroup"]': { height: 'auto' },
    '& input[type="range"]': { height: TOUCH },
    '& nav a': { ...touched, display: 'inline-flex', alignItems: 'center' },
  },
});
