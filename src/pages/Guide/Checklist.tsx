import { memo } from 'react';

import { Button } from '@grafana/ui';

import type { Live } from '../../client';
import { Section } from '../../components/Section';
import { PLAIN_LIST, stylesOf, visuallyHidden } from '../../lib/styles';
import { checklist, story, type Item } from './flow';
import type { TrackedProgress } from './useProgress';

interface ChecklistProps {
  live: Live;
  watched: TrackedProgress;
}

/** The steps of the demonstration by story. Steps are ticked automatically. */
export function Checklist({ live, watched: { progress, reset } }: ChecklistProps) {
  const styles = useStyles();
  const groups = checklist(progress, live);
  const items = groups.flatMap((group) => group.items);
  const done = items.filter((item) => item.done).length;
  return (
    <Section
      title={story.title}
      info={story.blocks[0].text}
      actions={
        <div className={styles.actions}>
          <span role="status">
            {done} of {items.length} seen
          </span>
          <Button variant="secondary" size="sm" onClick={reset}>
            Reset
          </Button>
        </div>
      }
    >
      {groups.map((group) => (
        <div key={group.title} className={styles.group}>
          <h3>{group.title}</h3>
          <p>{group.text}</p>
          <ol className={styles.list}>
            {group.items.map((item) => (
              <Row key={item.id} {...item} />
            ))}
          </ol>
        </div>
      ))}
    </Section>
  );
}

/** A row is rendered again only when its text changes. */
const Row = memo(function Row({ title, say, done, why }: Item) {
  const styles = useStyles();
  return (
    <li className={styles.row} data-done={done}>
      <span className={done ? styles.done : styles.open} aria-hidden="true">
        {done ? '✓' : ''}
      </span>
      <div>
        <h4>
          {title}
          <span className={styles.hidden}>{done ? ' (seen)' : ' (not seen yet)'}</span>
        </h4>
        <p>“{say}”</p>
        <p className={styles.why}>{why}</p>
      </div>
    </li>
  );
});

const useStyles = stylesOf((theme) => {
  const box = {
    flex: 'none',
    display: 'grid',
    placeItems: 'center',
    width: 28,
    height: 28,
    marginTop: 2,
    borderRadius: theme.shape.radius.circle,
    fontWeight: theme.typography.fontWeightBold,
  };
  return {
    hidden: visuallyHidden,
    actions: { display: 'flex', alignItems: 'center', gap: theme.spacing(1), fontVariantNumeric: 'tabular-nums' },
    group: {
      '& + &': { marginTop: theme.spacing(3) },
      '& > h3': { margin: 0, fontSize: '1.1em', fontWeight: theme.typography.fontWeightMedium },
      '& > p': { margin: theme.spacing(0, 0, 1), color: theme.colors.text.secondary, maxWidth: '68ch' },
    },
    list: {
      display: 'grid',
      gridTemplateColumns: 'repeat(auto-fit, minmax(min(100%, 420px), 1fr))',
      gap: theme.spacing(1.5, 3),
      ...PLAIN_LIST,
    },
    row: {
      display: 'flex',
      gap: theme.spacing(1.5),
      breakInside: 'avoid',
      '& h4': { margin: 0, fontSize: 'inherit', fontWeight: theme.typography.fontWeightMedium },
      '& p': { margin: 0, maxWidth: '60ch' },
    },
    open: { ...box, border: `2px solid ${theme.colors.border.strong}` },
    done: { ...box, background: theme.colors.primary.main, color: theme.colors.primary.contrastText },
    why: {
      // Two lines are reserved, so that a change of the text does not move the rows below.
      minHeight: '2.9em',
      color: theme.colors.text.secondary,
      fontSize: '0.875em',
      fontVariantNumeric: 'tabular-nums',
    },
  };
});
