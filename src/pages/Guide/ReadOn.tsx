import React, { memo } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import { Section } from '../../components/Section';
import type { Reference } from './content/types';

/** The public sources, for the visitor who wants to read for themselves. */
export const ReadOn = memo(function ReadOn({ of }: { of: Reference[] }) {
  const styles = useStyles2(getStyles);
  return (
    <Section
      title="Read on"
      info="Public documentation of what is shown here. The links open in another tab and need the internet."
    >
      <ul className={styles.list}>
        {of.map(({ title, url }) => (
          <li key={title}>
            <a href={url} target="_blank" rel="noopener noreferrer">
              {title}
            </a>
          </li>
        ))}
      </ul>
    </Section>
  );
});

const getStyles = (theme: GrafanaTheme2) => ({
  list: css({
    columns: '320px auto',
    columnGap: theme.spacing(3),
    margin: 0,
    paddingLeft: theme.spacing(2.5),
    '& li': { breakInside: 'avoid', marginBottom: theme.spacing(0.5) },
    '& a': { color: theme.colors.text.link, textDecoration: 'underline' },
  }),
});
