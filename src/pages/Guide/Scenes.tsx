import { Fragment, memo } from 'react';

import { Section } from '../../components/Section';
import { stylesOf } from '../../lib/styles';
import file from './content/scenes.md';
import { Markdown, useVisibleParts } from './Markdown';
import { parse } from './parse';

const scenes = parse(file);

const numbers = ['No', 'One', 'Two', 'Three'];

/** The scenes besides the change of mode, step by step. */
export const Scenes = memo(function Scenes() {
  const styles = useStyles();
  const played = useVisibleParts(scenes);
  return (
    <Section
      title={`${numbers[played.length]} scenes to play`}
      info="Each takes a few minutes, and the checklist below ticks its steps. Numbers are live."
    >
      <div className={styles.scenes}>
        {played.map(({ title, blocks, parts }) => (
          <article key={title} aria-label={title}>
            <h3>{title}</h3>
            <Markdown of={blocks} />
            {parts.map((part) => (
              <Fragment key={part.title}>
                <h4>{part.title}</h4>
                <Markdown of={part.blocks} />
              </Fragment>
            ))}
          </article>
        ))}
      </div>
    </Section>
  );
});

const useStyles = stylesOf((theme) => ({
  scenes: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(100%, 480px), 1fr))',
    gap: theme.spacing(3, 4),
    '& h3': { margin: theme.spacing(0, 0, 1), fontSize: '1.1em', fontWeight: theme.typography.fontWeightMedium },
    '& h4': { margin: theme.spacing(1, 0, 0.5), fontSize: 'inherit', color: theme.colors.text.secondary },
  },
}));
