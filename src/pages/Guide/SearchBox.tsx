import type { KeyboardEvent } from 'react';

import { Icon, Input } from '@grafana/ui';

import { COLUMN, stylesOf } from '../../lib/styles';
import type { Found } from './search';

interface SearchBoxProps {
  query: string;
  onChange(query: string): void;
  found: Found;
  /** The number of questions and of terms found. */
  questions: number;
  terms: number;
}

/** The search over questions and glossary. */
export function SearchBox({ query, onChange, found, questions, terms }: SearchBoxProps) {
  const styles = useStyles();
  const clear = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && query !== '') {
      event.stopPropagation();
      onChange('');
    }
  };
  return (
    <div role="search" className={styles.box}>
      <Input
        type="search"
        className={styles.input}
        aria-label="Search questions and glossary"
        placeholder="Search the guide"
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

const useStyles = stylesOf((theme) => ({
  box: { ...COLUMN, gap: theme.spacing(0.5) },
  input: { '& input': { fontSize: 'inherit' } },
  count: {
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
    fontVariantNumeric: 'tabular-nums',
  },
}));
