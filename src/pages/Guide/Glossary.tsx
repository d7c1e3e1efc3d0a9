import { memo } from 'react';
import { Link, useLocation } from 'react-router-dom';

import { Section } from '../../components/Section';
import { stylesOf } from '../../lib/styles';
import { Text } from './Markdown';
import type { Part } from './parse';

/** The terms of the field. Each has an address. */
export const Glossary = memo(function Glossary({ of, terms }: { of: Part; terms: Part[] }) {
  const styles = useStyles();
  const { search } = useLocation();
  return (
    <Section title={of.title} info={of.blocks[0].text}>
      {terms.length === 0 && <p>No matching terms. Try fewer or different words.</p>}
      <dl className={styles.terms}>
        {terms.map(({ id, title, blocks }) => (
          <div key={id} id={`term-${id}`} className={styles.term}>
            <dt>
              <Link to={{ search, hash: `#term-${id}` }} replace data-result>
                {title}
              </Link>
            </dt>
            <dd>
              <Text of={blocks[0].text} />
            </dd>
          </div>
        ))}
      </dl>
    </Section>
  );
});

const useStyles = stylesOf((theme) => ({
  terms: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fill, minmax(min(100%, 300px), 1fr))',
    gap: theme.spacing(1.5, 3),
    margin: 0,
  },
  term: {
    breakInside: 'avoid',
    scrollMarginTop: 'calc(var(--kvbooth-sticky-top, 0px) + 150px)',
    '@media (min-width: 1000px)': { scrollMarginTop: 'calc(var(--kvbooth-sticky-top, 0px) + 8px)' },
    '&:target': { outline: `2px solid ${theme.colors.primary.main}`, outlineOffset: 4 },
    '& a': { color: theme.colors.text.primary, fontWeight: theme.typography.fontWeightMedium },
    '& a:hover': { textDecoration: 'underline' },
    '& dd': { margin: 0, color: theme.colors.text.secondary },
  },
}));
