import { render, screen } from '@testing-library/react';

import { FactsProvider, Markdown, Spoken, Text } from './Markdown';
import { parse } from './parse';

describe('a text', () => {
  it('has figures, emphasis, code and links, and shows HTML as text', () => {
    const { container } = render(
      <FactsProvider value={{ figures: { 'live.rps': { value: '4', word: 'live' } }, holds: new Set() }}>
        <Text of="Now **{live.rps}**, *{no.such}*: `a*b*c`, [docs](https://example.org) <b>bold</b> round_robin_x" />
      </FactsProvider>
    );
    expect(container).toHaveTextContent('Now 4 live, — not known: a*b*c, docs <b>bold</b> round_robin_x');
    expect(container.querySelector('strong [data-word="live"]')).toBeInTheDocument();
    expect(container.querySelector('b')).not.toBeInTheDocument();
    expect(screen.getByRole('link', { name: 'docs' })).toHaveAttribute('rel', 'noopener noreferrer');
  });
});

it('a spoken text leaves out lines with a figure without a value', () => {
  const figures = { 'live.rps': { value: '4', word: 'live' }, 'live.hit': { value: '—', word: 'stopped' } };
  const [{ blocks }] = parse('# Talk\n\nRate {live.rps}.\n\nHits {live.hit}.\n\n- a\n- {live.hit}\n');
  const { container } = render(
    <FactsProvider value={{ figures, holds: new Set() }}>
      <Spoken of={blocks} />
    </FactsProvider>
  );
  expect(container).toHaveTextContent(/^Rate 4\.aFigures: 4 live$/);
});

describe('a file', () => {
  const file = `# Title {#id}

<!-- also: other words -->

Always.

<!-- when: simulated -->

Only when simulated.

1. First
2. Second

> A note.

- One more

## Below

Text.
`;

  it('is parts with addresses, remarks, conditions, lists and notes', () => {
    expect(parse(file)).toMatchObject([
      {
        id: 'id',
        title: 'Title',
        also: 'other words',
        blocks: [
          { text: 'Always.', kind: 'paragraph' },
          { when: 'simulated' },
          { text: 'First\nSecond', kind: 'ol', when: undefined },
          { text: 'A note.', kind: 'note' },
          { text: 'One more', kind: 'ul' },
        ],
        parts: [{ id: 'below', title: 'Below', blocks: [{ text: 'Text.' }] }],
      },
    ]);
  });

  it('shows the parts whose condition holds', () => {
    render(
      <FactsProvider value={{ figures: {}, holds: new Set() }}>
        <Markdown of={parse(file)[0].blocks} />
      </FactsProvider>
    );
    expect(screen.getByText('Always.')).toBeInTheDocument();
    expect(screen.getAllByRole('listitem').map((item) => item.textContent)).toEqual(['First', 'Second', 'One more']);
    expect(screen.queryByText('Only when simulated.')).not.toBeInTheDocument();
  });

  it.each(['<!-- when: it rains -->', '<!-- hidden: yes -->', '<hr>', '```js'])('with %s is refused', (comment) => {
    expect(() => parse(`# Title\n\n${comment}\n\nText.`)).toThrow(/^There is no/);
  });
});
