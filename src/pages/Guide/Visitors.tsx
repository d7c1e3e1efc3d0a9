import { memo } from 'react';
import { cx } from '@emotion/css';

import { Section } from '../../components/Section';
import { stylesOf, visuallyHidden } from '../../lib/styles';
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
  const styles = useStyles();
  const choices = [{ id: '', title: 'Anybody', who: 'Everything is shown.' }, ...visitors];
  return (
    <Section
      title="Who is your visitor?"
      info={
        'Choose a kind of visitor, and the page below shows what to say first and what to leave ' +
        'out. The choice is stored in the URL, so it can be bookmarked.'
      }
    >
      <fieldset className={styles.choices}>
        <legend className={styles.hidden}>Kind of visitor</legend>
        {choices.map(({ id, title, who }) => {
          const chosen = id === (visitor?.id ?? '');
          return (
            <label key={id} className={cx(styles.choice, chosen && styles.chosen)}>
              <input type="radio" name="visitor" value={id} checked={chosen} onChange={() => onChoose(id)} />
              <span>
                <b>{title}</b>
                <span className={styles.who}>{who}</span>
              </span>
            </label>
          );
        })}
      </fieldset>
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
  hidden: visuallyHidden,
  choices: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(100%, 200px), 1fr))',
    gap: theme.spacing(1),
    margin: 0,
    padding: 0,
    border: 0,
  },
  choice: {
    display: 'flex',
    gap: theme.spacing(1),
    padding: theme.spacing(1),
    border: `2px solid ${theme.colors.border.weak}`,
    borderRadius: theme.shape.radius.default,
    background: theme.colors.background.secondary,
    cursor: 'pointer',
    '&:hover': { borderColor: theme.colors.border.strong },
    '&:focus-within': { outline: `2px solid ${theme.colors.primary.main}`, outlineOffset: 2 },
    '& input': {
      flex: 'none',
      width: 18,
      height: 18,
      margin: theme.spacing(0.25, 0, 0),
      accentColor: theme.colors.primary.main,
    },
  },
  chosen: { borderColor: theme.colors.primary.main },
  who: { display: 'block', color: theme.colors.text.secondary, fontSize: '0.875em' },
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
