import { Fragment, memo, type ReactNode } from 'react';

import { Section } from '../../components/Section';
import { stylesOf } from '../../lib/styles';
import type { Content } from './content';
import type { Reference } from './figures';

/** A source of a figure, or further reading. */
export function References({ title, of }: { title: string; of: Reference[] }) {
  const styles = useStyles();
  return (
    <p className={styles.sources}>
      {title}:{' '}
      {of.map((one, i) => (
        <Fragment key={one.title}>
          {i > 0 && ' · '}
          {anchor(one)}
        </Fragment>
      ))}
    </p>
  );
}

/** The public sources, for visitors' own reading. */
export const ReadOn = memo(function ReadOn({ of: { title, blocks, links } }: { of: Content['readOn'] }) {
  const styles = useStyles();
  return (
    <Section title={title} info={blocks[0].text}>
      <ul className={styles.list}>
        {links.map((one) => (
          <li key={one.title}>{anchor(one)}</li>
        ))}
      </ul>
    </Section>
  );
});

function anchor({ title, url }: Reference): ReactNode {
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {title}
    </a>
  );
}

const useStyles = stylesOf((theme) => ({
  sources: {
    margin: theme.spacing(0.5, 0, 0),
    maxWidth: '90ch',
    color: theme.colors.text.secondary,
    fontSize: '0.8em',
    '& a': { color: theme.colors.text.link, textDecoration: 'underline' },
  },
  list: {
    columns: '320px auto',
    columnGap: theme.spacing(3),
    margin: 0,
    paddingLeft: theme.spacing(2.5),
    '& li': { breakInside: 'avoid', marginBottom: theme.spacing(0.5) },
    '& a': { color: theme.colors.text.link, textDecoration: 'underline' },
  },
}));
