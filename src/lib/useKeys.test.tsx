import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { useKeys } from './useKeys';

const s = jest.fn();
const up = jest.fn();
const space = jest.fn();

function Listening({ dialog }: { dialog?: boolean }) {
  useKeys({ s, ArrowUp: up, ' ': space });
  return (
    <>
      <input aria-label="Text" />
      <button>Press</button>
      {dialog && <div role="dialog" />}
    </>
  );
}

beforeEach(() => jest.clearAllMocks());

it('handles a letter in either case, before other listeners', async () => {
  const others = jest.fn();
  document.addEventListener('keydown', others);
  render(<Listening />);
  await userEvent.keyboard('sSx');
  expect(s).toHaveBeenCalledTimes(2);
  expect(others.mock.calls.map(([{ key }]) => key)).toEqual(['x']);
  document.removeEventListener('keydown', others);
});

it('ignores keys in inputs, in a dialog, and with the browser’s modifiers', async () => {
  const { rerender, unmount } = render(<Listening />);
  await userEvent.type(screen.getByLabelText('Text'), 's{ArrowUp} ');
  await userEvent.click(document.body);
  await userEvent.keyboard('{Control>}s{/Control}{Meta>}s{/Meta}{Alt>}s{/Alt}');
  rerender(<Listening dialog />);
  await userEvent.keyboard('s');
  expect([s, up].map(({ mock }) => mock.calls.length)).toEqual([0, 0]);
  rerender(<Listening />);
  await userEvent.keyboard('s');
  unmount();
  await userEvent.keyboard('s');
  expect(s).toHaveBeenCalledTimes(1);
});

it('does not handle the space bar on a focused button', async () => {
  render(<Listening />);
  screen.getByText('Press').focus();
  await userEvent.keyboard(' ');
  expect(space).not.toHaveBeenCalled();
  screen.getByText('Press').blur();
  await userEvent.keyboard(' ');
  expect(space).toHaveBeenCalledTimes(1);
});

it('repeats arrows that are held, and nothing else', async () => {
  render(<Listening />);
  await userEvent.keyboard('{ArrowUp>3/}');
  await userEvent.keyboard('{s>3/}');
  expect([up, s].map(({ mock }) => mock.calls.length)).toEqual([3, 1]);
});
