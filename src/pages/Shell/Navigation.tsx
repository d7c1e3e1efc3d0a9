import { memo, useId, useState, type FocusEvent, type KeyboardEvent } from 'react';
import { cx } from '@emotion/css';
import { NavLink } from 'react-router-dom';

import { Button, Icon } from '@grafana/ui';

import { stylesOf, WRAP } from '../../lib/styles';
import { usePagePath } from '../navigation';
import { pages } from '../registry';
import { useCurrentPage } from './useCurrentPage';

interface NavigationProps {
  /** Whether a second lane runs the same conversations. */
  twin: boolean;
}

/** The navigation between pages: tabs, and a menu on small screens. */
export const Navigation = memo(function Navigation({ twin }: NavigationProps) {
  const styles = useStyles();
  const pagePath = usePagePath();
  const current = useCurrentPage();
  const [open, setOpen] = useState(false);
  const id = useId();
  const leave = ({ currentTarget, relatedTarget }: FocusEvent) =>
    relatedTarget && !currentTarget.contains(relatedTarget) && setOpen(false);
  const escape = ({ key }: KeyboardEvent) => key === 'Escape' && setOpen(false);
  return (
    <nav aria-label="Pages" className={styles.nav} onBlur={leave} onKeyDown={escape}>
      <Button
        className={styles.menu}
        variant="secondary"
        icon="bars"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setOpen(!open)}
      >
        {current?.title ?? 'Pages'}
      </Button>
      <ul id={id} className={cx(styles.list, open && styles.open)} onClick={() => setOpen(false)}>
        {pages
          .filter((page) => !page.nested && (twin || !page.twin))
          .map(({ id, path, title, icon }) => (
            <li key={id}>
              <NavLink to={pagePath(path)} end={path === ''} className={styles.link}>
                <Icon name={icon} aria-hidden="true" /> {title}
              </NavLink>
            </li>
          ))}
      </ul>
    </nav>
  );
});

const useStyles = stylesOf((theme) => {
  const small = theme.breakpoints.down('md');
  return {
    nav: { position: 'relative', '@media print': { display: 'none' } },
    menu: {
      display: 'none',
      width: '100%',
      minHeight: 44,
      [small]: { display: 'flex' },
    },
    list: {
      ...WRAP,
      gap: theme.spacing(0, 0.25),
      listStyle: 'none',
      [small]: {
        display: 'none',
        position: 'absolute',
        zIndex: theme.zIndex.dropdown,
        top: '100%',
        left: 0,
        right: 0,
        flexDirection: 'column',
        padding: theme.spacing(0.5, 0),
        border: `1px solid ${theme.colors.border.medium}`,
        borderRadius: theme.shape.radius.default,
        background: theme.colors.background.elevated,
        boxShadow: theme.shadows.z3,
      },
    },
    open: { [small]: { display: 'flex' } },
    link: {
      display: 'flex',
      alignItems: 'center',
      gap: theme.spacing(0.75),
      padding: theme.spacing(1),
      borderBottom: '2px solid transparent',
      color: theme.colors.text.secondary,
      whiteSpace: 'nowrap',
      [small]: { minHeight: 44 },
      // Up to a dozen tabs in one row.
      '@media (min-width: 769px) and (max-width: 1400px)': { '& > svg': { display: 'none' } },
      '&:hover': { color: theme.colors.text.primary, borderBottomColor: theme.colors.border.strong },
      '&[aria-current="page"]': {
        color: theme.colors.text.primary,
        fontWeight: theme.typography.fontWeightMedium,
        borderBottomColor: theme.colors.primary.border,
      },
      '&:focus-visible': { outline: `2px solid ${theme.colors.primary.border}`, outlineOffset: -2 },
    },
  };
});
