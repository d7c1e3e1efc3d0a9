import { useId, type PropsWithChildren, type ReactNode } from 'react';

import { Button, Toggletip } from '@grafana/ui';

import { LINE, stylesOf } from '../../lib/styles';

interface SectionProps {
  /** The heading; it also names the region. */
  title: string;
  /** Two sentences: what the section shows, and the source of its numbers. */
  info: ReactNode;
  /** Controls at the right of the heading. */
  actions?: ReactNode;
}

/** A part of a page: a heading, a description, and the content in a frame. */
export function Section({ title, info, actions, children }: PropsWithChildren<SectionProps>) {
  const styles = useStyles();
  const id = useId();
  return (
    <section className={styles.section} aria-labelledby={id}>
      <div className={styles.head}>
        <div className={styles.title}>
          <h2 id={id}>{title}</h2>
          <Toggletip title={title} content={<div className={styles.info}>{info}</div>} placement="bottom-start">
            <Button variant="secondary" fill="text" size="sm" icon="info-circle" aria-label={`About “${title}”`} />
          </Toggletip>
        </div>
        {actions}
      </div>
      {children}
    </section>
  );
}

const useStyles = stylesOf((theme) => ({
  section: {
    // Not wider than the page, whatever its content.
    minWidth: 0,
    padding: theme.spacing(2),
    border: `1px solid ${theme.colors.border.weak}`,
    borderRadius: theme.shape.radius.default,
    background: theme.colors.background.primary,
  },
  head: {
    ...LINE,
    justifyContent: 'space-between',
    gap: theme.spacing(0.5, 2),
    marginBottom: theme.spacing(1),
  },
  title: {
    display: 'flex',
    alignItems: 'center',
    gap: theme.spacing(0.5),
    '& h2': { ...theme.typography.h4, margin: 0 },
  },
  info: { maxWidth: '60ch', textWrap: 'pretty' },
}));
