import React, { memo } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import { Section } from '../../components/Section';
import { scenes } from './content/scenes';
import { Paragraphs, Text, useHolds } from './FactsContext';

const numbers = ['No', 'One', 'Two', 'Three'];

/** What can be played beside the change of mode, step by step. */
export const Scenes = memo(function Scenes() {
  const styles = useStyles2(getStyles);
  const holds = useHolds();
  const played = scenes.filter(({ when }) => when === undefined || holds.has(when));
  return (
    <Section
      title={`${numbers[played.length]} scenes to play`}
      info="Each takes a few minutes, and the checklist below ticks its steps. Numbers are live."
    >
      <div className={styles.scenes}>
        {played.map(({ id, title, text, steps, fair }) => (
          <article key={id} aria-label={title}>
            <h3>{title}</h3>
            <Paragraphs of={text} />
            <ol>
              {steps.map((step) => (
                <li key={step}>
                  <Text of={step} />
                </li>
              ))}
            </ol>
            <h4>Also say</h4>
            <Paragraphs of={fair} />
          </article>
        ))}
      </div>
    </Section>
  );
});

const getStyles = (theme: GrafanaTheme2) => ({
  scenes: css({
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(100%, 480px), 1fr))',
    gap: theme.spacing(3, 4),
    '& h3': { margin: theme.spacing(0, 0, 1), fontSize: '1.1em', fontWeight: theme.typography.fontWeightMedium },
    '& h4': { margin: theme.spacing(1, 0, 0.5), fontSize: 'inherit', color: theme.colors.text.secondary },
    '& ol': { margin: 0, paddingLeft: theme.spacing(3), maxWidth: '68ch' },
    '& li': { marginBottom: theme.spacing(0.75), breakInside: 'avoid' },
  }),
});
