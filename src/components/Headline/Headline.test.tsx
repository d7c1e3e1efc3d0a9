import { render, screen, within } from '@testing-library/react';

import type { Headline, LiveState } from '../../client';
import { violations } from '../../test/axe';
import { headline, live } from '../../test/fixtures';
import { texts } from '../../test/render';
import { HeadlineView } from '.';

const { state } = live();

function show(change: Partial<Headline> = {}, shown: LiveState = state) {
  const view = render(<HeadlineView state={shown} headline={headline(change)} large />);
  const update = (next: Partial<Headline>) => view.rerender(<HeadlineView state={state} headline={headline(next)} />);
  return { ...view, update, announced: () => view.container.querySelector('[aria-live]')?.textContent };
}

const paragraphs = () => Array.from(screen.getByRole('region', { name: 'Result' }).querySelectorAll('p'));

it('is the sentence with its difference, what it rests on, and each comparison', async () => {
  const { container } = show();
  const [sentence, detail] = paragraphs();
  expect(sentence).toHaveTextContent(headline().text);
  expect(within(sentence).getByText(/sooner/).tagName).toBe('STRONG');
  expect(detail).toHaveTextContent(
    'Certain since 09:52 · mean TTFT 255 ms beside 327 ms · 95 % interval: 15 to 29 % sooner'
  );
  expect(texts(screen.getAllByRole('listitem'))).toEqual([
    '▲Measured here: 22\u00a0% sooner',
    '?Recorded: 25\u00a0% sooner so far',
    '?Recorded: 9\u00a0% sooner so far',
  ]);
  expect(await violations(container)).toEqual([]);
});

it.each([
  [41, /^Certain in about 50 s$/],
  [170, /^Certain in about 3 min$/],
  [undefined, /^$/],
])('counts down to certainty where %s s are left', (certain_in_seconds, words) => {
  show({ kind: 'uncertain', certain: false, detail: [], certain_in_seconds });
  expect(paragraphs()[1].textContent?.replaceAll('\u00a0', ' ')).toMatch(words);
});

it('is announced when its meaning changes, and not with each second', () => {
  const waiting = (text: string) => ({ text, difference: undefined, kind: 'waiting', certain: false }) as const;
  const { update, announced } = show(waiting('Settling, 42 s to go'));
  update(waiting('Settling, 41 s to go'));
  expect(paragraphs()[0]).toHaveTextContent('Settling, 41 s to go');
  expect(announced()).toBe('Settling, 42 s to go');
  update({});
  expect(announced()).toBe(headline().text);
});

it('states that the load generator is lost, or not reached yet, with nothing that was known before', () => {
  const lost = show({}, { status: 'lost', since: Date.parse('2026-11-20T08:07:11'), problem: 'connection refused' });
  expect(texts(paragraphs())).toEqual(['Load generator lost since 08:07:11', 'Connection refused']);
  expect(screen.queryByRole('listitem')).not.toBeInTheDocument();
  lost.unmount();
  show({}, { status: 'loading' });
  expect(paragraphs()[0]).toHaveTextContent('Waiting for the load generator');
});
