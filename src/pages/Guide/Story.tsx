import React, { memo, useState } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { Button, useStyles2 } from '@grafana/ui';

import { Section } from '../../components/Section';
import { results } from './content/results';
import type { Content } from './content';
import { others, parallels, type Takeaway } from './content/story';
import type { Depth, Visitor } from './content/visitors';
import { Paragraphs, Text, useSources } from './FactsContext';
import { References } from './References';

interface ForVisitor {
  content: Content;
  visitor: Visitor | undefined;
}

/** What to say in half a minute. */
export const Pitch = memo(function Pitch({ content: { pitch, vendorPitch }, visitor }: ForVisitor) {
  const styles = useStyles2(getStyles);
  const told = visitor?.story ?? 'after';
  const text = told === 'asked' ? pitch : told === 'first' ? [vendorPitch, ...pitch] : [...pitch, vendorPitch];
  return (
    <Section
      title="Thirty seconds"
      info="What to say to somebody who walks by. Numbers are live or computed from the recorded table, and each says which."
    >
      <div className={styles.pitch}>
        <Paragraphs of={text} />
      </div>
    </Section>
  );
});

/** The vendor's part: who asks for it hears it, to the others it is told. */
export const PlatformStory = memo(function PlatformStory({ content: { story }, visitor }: ForVisitor) {
  const styles = useStyles2(getStyles);
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
          <Sources of={story.parts.map((part) => part.text)} />
        </>
      ) : (
        <Button variant="secondary" onClick={() => setAsked(true)}>
          If they ask for proof
        </Button>
      )}
    </Section>
  );
});

/** What a visitor should take home, and where they know it from. */
export const Takeaways = memo(function Takeaways({ content: { takeaways }, visitor }: ForVisitor) {
  const styles = useStyles2(getStyles);
  const depth = visitor?.depth ?? 3;
  return (
    <Section
      title="Four things to take home"
      info="The message at the depth that suits the visitor, with live and recorded numbers. Limits are stated next to gains."
    >
      <ol className={styles.cards}>
        {takeaways.map((takeaway) => (
          <li key={takeaway.id}>
            <h3>{takeaway.title}</h3>
            <Paragraphs of={atDepth(takeaway, depth)} />
          </li>
        ))}
      </ol>
      <h3 className={styles.subtitle}>Similar workloads</h3>
      <ul className={styles.cards}>
        {parallels.map(({ id, title, text }) => (
          <li key={id}>
            <h4>{title}</h4>
            {text}
          </li>
        ))}
      </ul>
      {depth === 3 && (
        <>
          <h3 className={styles.subtitle}>What others report</h3>
          <Paragraphs of={others} />
          <Sources of={others} />
        </>
      )}
    </Section>
  );
});

/** What the recorded runs say, for whoever asks “so what is the difference?”. */
export const Results = memo(function Results() {
  const styles = useStyles2(getStyles);
  return (
    <Section
      title="The results in plain English"
      info="What to answer to “so what is the difference?”. Every number is computed from the recorded table, over all its levels, including the unfavourable ones."
    >
      <ul className={styles.cards}>
        {results.map(({ id, title, text }) => (
          <li key={id}>
            <h3>{title}</h3>
            <Paragraphs of={text} />
          </li>
        ))}
      </ul>
    </Section>
  );
});

function atDepth({ text, numbers, deep }: Takeaway, depth: Depth): string[] {
  const all = [text, depth >= 2 ? numbers : undefined, depth === 3 ? deep : undefined];
  return all.filter((one) => one !== undefined);
}

function Sources({ of }: { of: string[] }) {
  const styles = useStyles2(getStyles);
  const sources = useSources(of);
  return sources.length > 0 ? <References title="Published by" of={sources} className={styles.sources} /> : null;
}

const getStyles = (theme: GrafanaTheme2) => ({
  pitch: css({ fontSize: '1.15em' }),
  cards: css({
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(100%, 280px), 1fr))',
    gap: theme.spacing(2, 3),
    margin: 0,
    padding: 0,
    listStyle: 'none',
    '& h3, & h4': {
      margin: theme.spacing(0, 0, 0.5),
      fontSize: 'inherit',
      fontWeight: theme.typography.fontWeightBold,
    },
    '& li': { maxWidth: '60ch', breakInside: 'avoid' },
  }),
  subtitle: css({ ...theme.typography.h5, margin: theme.spacing(3, 0, 1), color: theme.colors.text.secondary }),
  message: css({ margin: theme.spacing(2, 0, 0), fontWeight: theme.typography.fontWeightMedium, maxWidth: '68ch' }),
  sources: css({
    margin: theme.spacing(1, 0, 0),
    color: theme.colors.text.secondary,
    fontSize: '0.8em',
    maxWidth: '90ch',
    '& a': { color: theme.colors.text.link, textDecoration: 'underline' },
  }),
});
