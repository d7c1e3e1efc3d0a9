import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { stubSizes } from '../../test/sizes';
import { CopyLink, FullScreenButton } from '.';
import { shareLink } from './CopyLink';

beforeEach(() => stubSizes());
afterEach(() => {
  jest.restoreAllMocks();
  setFullScreen({});
});

/** Sets the browser's support of full screen. */
function setFullScreen(state: { fullscreenEnabled?: boolean; fullscreenElement?: Element | null }) {
  const values = { fullscreenEnabled: false, fullscreenElement: null, ...state };
  Object.entries(values).forEach(([name, value]) =>
    Object.defineProperty(document, name, { value, configurable: true })
  );
}

describe('a link', () => {
  it('keeps the choices, and fixes the time range', () => {
    expect(shareLink('http://host/conversations?status=error#a')).toBe('http://host/conversations?status=error#a');
    expect(shareLink('http://host/d/booth?from=now-5m&to=now&kiosk', { from: 1000, to: 2000 })).toBe(
      'http://host/d/booth?from=1000&to=2000&kiosk='
    );
  });

  it('is copied by its button', async () => {
    const user = userEvent.setup();
    Object.assign(window, { isSecureContext: true }); // in an insecure context, a hidden text field is copied
    render(<CopyLink span={() => ({ from: 1, to: 2 })} />);
    await user.click(screen.getByRole('button', { name: 'Copy link' }));
    expect(await navigator.clipboard.readText()).toBe('http://localhost/?from=1&to=2');
  });
});

describe('full screen', () => {
  it('is not offered where it is not supported', () => {
    setFullScreen({ fullscreenEnabled: false });
    render(<FullScreenButton />);
    expect(screen.queryByRole('button')).not.toBeInTheDocument();
  });
});
