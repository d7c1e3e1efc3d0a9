import React, { type KeyboardEvent } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { Icon, Input, useStyles2 } from '@grafana/ui';

import { glossary } from './content/glossary';
import { groups } from './content/questions';
import type { Found } from './search';

const QUESTIONS = groups.reduce((sum, group) => sum + group.questions.length, 0);

interface SearchBoxProps {
  query: string;
  onChange(query: string): void;
  found: Found;
}

/** The search over questions and glossary; it stays in sight. */
export function SearchBox({ query, onChange, found }: SearchBoxProps) {
  const styles = useStyles2(getStyles);
  const clear = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && query !== '') {
      event.stopPropagation();
      onChange('');
    }
  };
  return (
    <div role="search" className={styles.box} id="guide-search">
      <Input
        type="search"
        className={styles.input}
        aria-label="Search questions and glossary"
        placeholder="Search questions and glossary"
        prefix={<Icon name="search" aria-hidden />}
        value={query}
        onChange={(event) => onChange(event.currentTarget.value)}
        onKeyDown={clear}
      />
      <span role="status" className={styles.count}>
        {found.questions} of {QUESTIONS} questions, {found.terms.length} of {glossary.length} terms
      </span>
    </div>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  box: css({
    position: 'sticky',
    top: 'var(--kvbooth-sticky-top, 0px)',
    zIndex: 1,
    display: 'flex',
    flexWrap: 'wrap',
    alignItems: 'center',
    gap: theme.spacing(0.5, 2),
    padding: theme.spacing(1, 0),
    background: theme.colors.background.canvas,
    '@media print': { display: 'none' },
  }),
  input: css({ flex: '1 1 280px', maxWidth: 640, '& input': { fontSize: 'inherit' } }),
  count: css({ color: theme.colors.text.secondary, fontVariantNumeric: 'tabular-nums' }),
});
