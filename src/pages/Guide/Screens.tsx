import { memo, useState } from 'react';
import { Link } from 'react-router-dom';

import { Section } from '../../components/Section';
import { stylesOf } from '../../lib/styles';
import { usePagePath } from '../navigation';
import file from './content/screens.md';
import { Disclosure } from './Disclosure';
import { Text, useVisibleParts } from './Markdown';
import { parse, type Part } from './parse';

const [pages, dashboards] = parse(file);

/** Explains the parts of each screen. */
export const Screens = memo(function Screens() {
  const groups = [
    { ...pages, parts: useVisibleParts(pages.parts), page: pageOf },
    { ...dashboards, page: undefined },
  ];
  const styles = useStyles();
  const [opened, setOpened] = useState<ReadonlySet<string>>(() => new Set());
  const toggle = (id: string) =>
    setOpened((before) => new Set(before.has(id) ? [...before].filter((one) => one !== id) : [...before, id]));
  return (
    <Section
      title="What you see on each screen"
      info={
        'Every screen of the booth, part by part: what it shows and how to read it. Open the one ' +
        'the visitor points at.'
      }
    >
      {groups.map((group) => (
        <div key={group.title} className={styles.group}>
          <h3>{group.title}</h3>
          {group.parts.map((screen) => (
            <Disclosure
              key={screen.id}
              id={`screen-${screen.id}`}
              title={screen.title}
              open={opened.has(screen.id)}
              onToggle={() => toggle(screen.id)}
            >
              <Explained of={screen} page={group.page?.(screen)} />
            </Disclosure>
          ))}
        </div>
      ))}
    </Section>
  );
});

/** Returns the path of a screen's page. The dashboard has the root path. */
function pageOf({ id }: Part): string {
  return id === 'dashboard' ? '' : id;
}

function Explained({ of: { title, parts }, page }: { of: Part; page?: string }) {
  const styles = useStyles();
  const pagePath = usePagePath();
  return (
    <>
      <dl className={styles.items}>
        {parts.map((item) => (
          <div key={item.title}>
            <dt>{item.title}</dt>
            <dd>
              <Text of={item.blocks[0].text} />
            </dd>
          </div>
        ))}
      </dl>
      {page !== undefined && <Link to={pagePath(page)} className={styles.link}>{`Open “${title}”`}</Link>}
    </>
  );
}

const useStyles = stylesOf((theme) => ({
  group: {
    '& + &': { marginTop: theme.spacing(3) },
    '& > h3': { ...theme.typography.h5, margin: theme.spacing(0, 0, 0.5), color: theme.colors.text.secondary },
  },
  items: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(100%, 320px), 1fr))',
    gap: theme.spacing(1.5, 3),
    margin: theme.spacing(0, 0, 1),
    '& dt': { fontWeight: theme.typography.fontWeightMedium },
    '& dd': { margin: 0, maxWidth: '60ch', color: theme.colors.text.secondary },
  },
  link: { color: theme.colors.text.link, textDecoration: 'underline' },
}));
