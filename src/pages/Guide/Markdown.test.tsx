import { render, screen } from '@testing-library/react';

import { FactsProvider, Markdown, Text } from './Markdown';
import { parse } from './parse';

describe('a text', () => {
  it('has figures, emphasis, code and links, and shows HTML as text', () => {
    const { container } = render(
      <FactsProvider facts={{ figures: { 'live.rps': { value: '4', word: 'live' } }, holds: new Set() }}>
        <Text of="Now **{live.rps}**, *{no.such}*: `a*b*c`, [docs](https://example.org) <b>bold</b> round_robin_x" />
      </FactsProvider>
    );
    expect(container).toHaveTextContent('Now 4 live, — not known: a*b*c, docs <b>bold</b> round_robin_x');
    expect(container.querySelector('strong [data-word="live"]')).toBeInTheDocument();
    expect(container.querySelector('b')).not.toBeInTheDocument();
    expect(screen.getByRole('link', { name: 'docs' })).toHaveAttribute('rel', 'noopener noreferrer');
  });
});

describe('a file', () => {
  const file = `# Title {#id}

<!-- also: other words -->

Always.

<!-- when: running -->

Only while it runs.

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
          { when: 'running' },
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
      <FactsProvider facts={{ figures: {}, holds: new Set() }}>
        <Markdown of={parse(file)[0].blocks} />
      </FactsProvider>
    );
    expect(screen.getByText('Always.')).toBeInTheDocument();
    expect(screen.getAllByRole('listitem').map((item) => item.textContent)).toEqual(['First', 'Second', 'One more']);
    expect(screen.queryByText('Only while it runs.')).not.toBeInTheDocument();
  });

  it.each(['<!-- when: it rains -->', '<!-- hidden: yes -->', '<hr>', '```js'])('with %s is refused', (comment) => {
    expect(() => parse(`# Title\n\n${comment}\n\nText.`)).toThrow(/^There is no/);
  });
});
