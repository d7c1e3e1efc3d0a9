import React, { type KeyboardEvent } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { Icon, Input, useStyles2 } from '@grafana/ui';

import type { Found } from './search';

interface SearchBoxProps {
  query: string;
  onChange(query: string): void;
  found: Found;
  /** How many questions there are to find, and how many terms. */
  questions: number;
  terms: number;
}

/** The search over questions and glossary; it stays in sight. */
export function SearchBox({ query, onChange, found, questions, terms }: SearchBoxProps) {
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
        {found.questions} of {questions} questions, {found.terms.length} of {terms} terms
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
