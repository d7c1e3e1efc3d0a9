import { useId, type PropsWithChildren, type ReactNode } from 'react';

import { Icon } from '@grafana/ui';

import { stylesOf } from '../../lib/styles';

interface DisclosureProps {
  /** For links to it. */
  id: string;
  title: string;
  /** The text behind the title. */
  mark?: ReactNode;
  open: boolean;
  onToggle(): void;
}

/** A heading that opens and closes its content. Closed content is not rendered. */
export function Disclosure({ id, title, mark, open, onToggle, children }: PropsWithChildren<DisclosureProps>) {
  const styles = useStyles();
  const body = useId();
  return (
    <div id={id} className={styles.item}>
      <h4 className={styles.heading}>
        <button
          type="button"
          className={styles.button}
          aria-expanded={open}
          aria-controls={open ? body : undefined}
          onClick={onToggle}
          data-result
        >
          <Icon name={open ? 'angle-down' : 'angle-right'} aria-hidden />
          <span>{title}</span>
          {mark}
        </button>
      </h4>
      {open && (
        <div id={body} className={styles.body}>
          {children}
        </div>
      )}
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  item: {
    borderTop: `1px solid ${theme.colors.border.weak}`,
    scrollMarginTop: 'calc(var(--kvbooth-sticky-top, 0px) + 150px)',
    '@media (min-width: 1000px)': { scrollMarginTop: 'calc(var(--kvbooth-sticky-top, 0px) + 8px)' },
    breakInside: 'avoid',
  },
  heading: { margin: 0, fontSize: 'inherit' },
  button: {
    display: 'flex',
    alignItems: 'center',
    gap: theme.spacing(1),
    width: '100%',
    minHeight: 44,
    padding: theme.spacing(1, 0.5),
    border: 0,
    background: 'none',
    color: theme.colors.text.primary,
    font: 'inherit',
    fontWeight: theme.typography.fontWeightMedium,
    textAlign: 'left',
    '&:hover': { background: theme.colors.action.hover },
    '&:focus-visible': { outline: `2px solid ${theme.colors.primary.main}`, outlineOffset: -2 },
    '& svg': { flex: 'none' },
  },
  body: { padding: theme.spacing(0, 1, 1, 4) },
}));
