import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { violations } from '../../test/axe';
import { Box, ButtonBox, Diagram, Words } from '.';

const rect = { x: 0, y: 0, width: 100, height: 50 };

describe('a part of a drawing', () => {
  const show = (onSelect: () => void) =>
    render(
      <Diagram label="Drawing" width={100} height={50} minWidth={80}>
        <ButtonBox rect={rect} title="Router" selected onSelect={onSelect}>
          <Words x={0} y={0}>
            3
          </Words>
        </ButtonBox>
        <Box rect={rect} title="Wire" tone="absent" />
      </Diagram>
    );

  it('is a button with a name of its own', async () => {
    const onSelect = jest.fn();
    const { container } = show(onSelect);
    const button = screen.getByRole('button', { name: 'Router 3' });
    expect(button).toHaveAttribute('aria-pressed', 'true');
    await userEvent.click(button);
    expect(onSelect).toHaveBeenCalledTimes(1);
    expect(await violations(container)).toEqual([]);
  });

  it.each(['{Enter}', ' '])('is chosen by keyboard: %s', async (key) => {
    const onSelect = jest.fn();
    show(onSelect);
    await userEvent.tab(); // the drawing, which may scroll
    await userEvent.tab();
    await userEvent.keyboard(key);
    await userEvent.keyboard('x');
    expect(onSelect).toHaveBeenCalledTimes(1);
  });
});
