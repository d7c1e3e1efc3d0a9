import React, { memo } from 'react';
import { css } from '@emotion/css';
import { NavLink } from 'react-router-dom';

import type { GrafanaTheme2 } from '@grafana/data';
import { Icon, useStyles2 } from '@grafana/ui';

import { usePagePath } from '../navigation';
import { pages } from '../registry';

interface NavigationProps {
  /** Whether a second lane runs the same conversations. */
  twin: boolean;
}

/** The way from page to page. */
export const Navigation = memo(function Navigation({ twin }: NavigationProps) {
  const styles = useStyles2(getStyles);
  const pagePath = usePagePath();
  return (
    <nav aria-label="Pages">
      <ul className={styles.list}>
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

const getStyles = (theme: GrafanaTheme2) => ({
  list: css({ display: 'flex', flexWrap: 'wrap', gap: theme.spacing(0, 0.5), listStyle: 'none' }),
  link: css({
    display: 'flex',
    alignItems: 'center',
    gap: theme.spacing(0.75),
    padding: theme.spacing(1, 1.5),
    borderBottom: '2px solid transparent',
    color: theme.colors.text.secondary,
    whiteSpace: 'nowrap',
    '&:hover': { color: theme.colors.text.primary, borderBottomColor: theme.colors.border.strong },
    '&[aria-current="page"]': {
      color: theme.colors.text.primary,
      fontWeight: theme.typography.fontWeightMedium,
      borderBottomColor: theme.colors.primary.border,
    },
    '&:focus-visible': { outline: `2px solid ${theme.colors.primary.border}`, outlineOffset: -2 },
  }),
});
