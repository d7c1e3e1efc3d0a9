import React from 'react';
import { render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';

import { violations } from '../../test/axe';
import { laneSnapshot } from '../../test/fixtures';
import { Box, ButtonBox, Diagram, shorten, targetKind, Words } from '.';

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

describe('words', () => {
  it('are shortened at their beginning', () => {
    expect(shorten('worker-1', 8)).toBe('worker-1');
    expect(shorten('dynamo-worker-x7f9k', 9)).toBe('…er-x7f9k');
  });
});

describe('targetKind', () => {
  const lane = (engine: string | undefined, driver = 'manual') =>
    laneSnapshot({ target: { deployment: { engine } }, state: { driver } });

  it.each([
    ['the simulated cluster by its driver', lane(undefined, 'simulated'), undefined, 'simulated'],
    ['the simulated cluster by its engine', lane('simulated trtllm'), undefined, 'simulated'],
    ['mock workers', lane('mock of vllm'), { nvext: true }, 'mock'],
    ['a Dynamo', lane('trtllm'), { nvext: true }, 'dynamo'],
    ['another server', lane('vllm'), { nvext: false }, 'plain'],
    ['nothing before the status is known', lane('vllm'), undefined, 'unknown'],
    ['nothing without a lane', undefined, { nvext: true }, 'unknown'],
  ])('knows %s', (_, of, extensions, kind) => {
    expect(targetKind(of, extensions)).toBe(kind);
  });
});
