import { memo, useState } from 'react';

import { Button } from '@grafana/ui';

import { Section } from '../../components/Section';
import { PLAIN_LIST, stylesOf } from '../../lib/styles';
import type { Content } from './content';
import resultsFile from './content/results.md';
import type { Visitor } from './content/visitors';
import { Markdown, Text, useSources } from './Markdown';
import { parse, type Block, type Part } from './parse';
import { References } from './References';

interface ForVisitor {
  content: Content;
  visitor: Visitor | undefined;
}

/** The pitch of half a minute. */
export const Pitch = memo(function Pitch({ content: { pitch, vendorPitch }, visitor }: ForVisitor) {
  const styles = useStyles();
  const [info, ...own] = pitch.blocks;
  const order = visitor?.story ?? 'after';
  const text = order === 'asked' ? own : order === 'first' ? [vendorPitch, ...own] : [...own, vendorPitch];
  return (
    <Section title={pitch.title} info={info.text}>
      <div className={styles.pitch}>
        <Markdown of={text} />
      </div>
    </Section>
  );
});

/** The vendor's part. It is folded for a visitor who came for the router. */
export const PlatformStory = memo(function PlatformStory({ content: { story }, visitor }: ForVisitor) {
  const styles = useStyles();
  const [asked, setAsked] = useState(false);
  const isShown = asked || visitor?.story !== 'asked';
  return (
    <Section title={story.title} info={story.info}>
      {isShown ? (
        <>
          <ul className={styles.cards}>
            {story.parts.map(({ id, title, text }) => (
              <li key={id}>
                <h3>{title}</h3>
                <Text of={text} />
              </li>
            ))}
          </ul>
          <p className={styles.message}>{story.message}</p>
          <Sources of={story.parts} />
        </>
      ) : (
        <Button variant="secondary" onClick={() => setAsked(true)}>
          If they ask for proof
        </Button>
      )}
    </Section>
  );
});

/** The messages for a visitor at the chosen depth, with their sources. */
export const Takeaways = memo(function Takeaways({ content, visitor }: ForVisitor) {
  const styles = useStyles();
  const { takeaways, similar, others } = content;
  const depth = visitor?.depth ?? 3;
  return (
    <Section title={takeaways.title} info={takeaways.blocks[0].text}>
      <ol className={styles.cards}>
        <Cards of={takeaways.parts} depth={depth} />
      </ol>
      <h3 className={styles.subtitle}>{similar.title}</h3>
      <ul className={styles.cards}>
        {similar.parts.map(({ title, blocks }) => (
          <li key={title}>
            <h4>{title}</h4>
            <Text of={blocks[0].text} />
          </li>
        ))}
      </ul>
      {depth === 3 && (
        <>
          <h3 className={styles.subtitle}>{others.title}</h3>
          <Markdown of={others.blocks} />
          <Sources of={others.blocks} />
        </>
      )}
    </Section>
  );
});

const [results] = parse(resultsFile);

/** The results of the recorded runs. */
export const Results = memo(function Results() {
  const styles = useStyles();
  return (
    <Section title={results.title} info={results.blocks[0].text}>
      <ul className={styles.cards}>
        <Cards of={results.parts} />
      </ul>
    </Section>
  );
});

/** A card for each part, with all of its paragraphs or the first ones. */
function Cards({ of, depth }: { of: Part[]; depth?: number }) {
  return (
    <>
      {of.map(({ title, blocks }) => (
        <li key={title}>
          <h3>{title}</h3>
          <Markdown of={blocks.slice(0, depth)} />
        </li>
      ))}
    </>
  );
}

function Sources({ of }: { of: Block[] }) {
  const sources = useSources(of);
  return sources.length > 0 ? <References title="Published by" of={sources} /> : null;
}

const useStyles = stylesOf((theme) => ({
  pitch: { fontSize: '1.15em' },
  cards: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(100%, 280px), 1fr))',
    gap: theme.spacing(2, 3),
    ...PLAIN_LIST,
    '& h3, & h4': {
      margin: theme.spacing(0, 0, 0.5),
      fontSize: 'inherit',
      fontWeight: theme.typography.fontWeightBold,
    },
    '& li': { maxWidth: '60ch', breakInside: 'avoid' },
  },
  subtitle: { ...theme.typography.h5, margin: theme.spacing(3, 0, 1), color: theme.colors.text.secondary },
  message: { margin: theme.spacing(2, 0, 0), fontWeight: theme.typography.fontWeightMedium, maxWidth: '68ch' },
}));
