import { memo } from 'react';

import { RadioCards } from '../../components/RadioCards';
import { Section } from '../../components/Section';
import { stylesOf } from '../../lib/styles';
import type { Visitor } from './content/visitors';
import { Text } from './Markdown';

interface VisitorsProps {
  visitors: Visitor[];
  visitor: Visitor | undefined;
  /** An empty id selects no kind. */
  onChoose(id: string): void;
}

/** The choice of the visitor's kind; the page follows it. */
export const Visitors = memo(function Visitors({ visitors, visitor, onChoose }: VisitorsProps) {
  const choices: Array<Pick<Visitor, 'title' | 'who'> & { id: string }> = [
    { id: '', title: 'Anybody', who: 'Everything is shown.' },
    ...visitors,
  ];
  return (
    <Section
      title="Who is your visitor?"
      info={
        'Choose a kind of visitor, and the page below shows what to say first and what to leave ' +
        'out. The choice is stored in the URL, so it can be bookmarked.'
      }
    >
      <RadioCards
        legend="Kind of visitor"
        isLegendHidden
        cards={choices.map(({ id, title, who }) => ({ value: id, title, text: who }))}
        value={visitor?.id ?? ''}
        onChange={onChoose}
      />
      {visitor && <Advice visitor={visitor} />}
    </Section>
  );
});

function Advice({ visitor: { first, leave, depthText } }: { visitor: Visitor }) {
  const styles = useStyles();
  return (
    <dl className={styles.advice}>
      <div>
        <dt>Say first</dt>
        {first.map((text) => (
          <dd key={text}>
            <Text of={text} />
          </dd>
        ))}
      </div>
      <div>
        <dt>Leave out</dt>
        {leave.map((text) => (
          <dd key={text}>{text}</dd>
        ))}
      </div>
      <div>
        <dt>Depth</dt>
        <dd>{depthText}</dd>
      </div>
    </dl>
  );
}

const useStyles = stylesOf((theme) => ({
  advice: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(100%, 240px), 1fr))',
    gap: theme.spacing(2),
    margin: theme.spacing(2, 0, 0),
    '& dt': { color: theme.colors.text.secondary, fontSize: '0.875em' },
    '& dd': { margin: 0, maxWidth: '60ch' },
    '& dd + dd': { marginTop: theme.spacing(0.5) },
  },
}));
