import React, { memo, useDeferredValue, useEffect, useMemo, useState, type KeyboardEvent } from 'react';
import { css } from '@emotion/css';
import { useLocation } from 'react-router-dom';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Content } from './content';
import type { Visitor } from './content/visitors';
import { Glossary } from './Glossary';
import { Questions } from './Questions';
import { likelyFirst, search } from './search';
import { SearchBox } from './SearchBox';

const NOBODY: string[] = [];

interface ReferenceProps {
  content: Content;
  visitor: Visitor | undefined;
}

/** Questions and glossary with the one search over both. */
export const Reference = memo(function Reference({ content: { groups, glossary }, visitor }: ReferenceProps) {
  const styles = useStyles2(getStyles);
  const [query, setQuery] = useState('');
  const [opened, setOpened] = useState<ReadonlySet<string>>(() => new Set());
  const likely = visitor?.asks ?? NOBODY;
  const settledQuery = useDeferredValue(query.trim());
  const found = useMemo(() => search(settledQuery, groups, glossary), [settledQuery, groups, glossary]);
  const ordered = useMemo(
    () => found.groups.map((group) => ({ ...group, questions: likelyFirst(group.questions, likely) })),
    [found, likely]
  );
  const questions = groups.reduce((sum, group) => sum + group.questions.length, 0);
  const target = useTarget();
  const [reached, setReached] = useState<string>();
  if (target !== reached) {
    setReached(target);
    setOpened((before) => (target ? new Set([...before, target]) : before));
  }
  return (
    <div className={styles.reference} onKeyDown={moveByArrows}>
      <SearchBox query={query} onChange={setQuery} found={found} questions={questions} terms={glossary.length} />
      <Questions groups={ordered} likely={likely} open={opened} onOpen={setOpened} isFiltered={settledQuery !== ''} />
      <Glossary terms={found.terms} />
    </div>
  );
});

/** What the address points at is scrolled to; a question, which is to be opened, is named here. */
function useTarget(): string | undefined {
  const { hash } = useLocation();
  const id = decodeURIComponent(hash.slice(1));
  useEffect(() => {
    if (id) {
      document.getElementById(id)?.scrollIntoView({ block: 'start' });
    }
  }, [id]);
  return id.startsWith('question-') ? id.slice('question-'.length) : undefined;
}

/** Up and down lead from the search through what was found, and back. */
function moveByArrows(event: KeyboardEvent<HTMLDivElement>) {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  if (step === 0) {
    return;
  }
  const stops = Array.from(event.currentTarget.querySelectorAll<HTMLElement>('input, [data-result]'));
  const at = stops.findIndex((stop) => stop === document.activeElement);
  const next = at < 0 ? undefined : stops[at + step];
  if (next) {
    event.preventDefault();
    next.focus();
  }
}

const getStyles = (theme: GrafanaTheme2) => ({
  reference: css({ display: 'flex', flexDirection: 'column', gap: theme.spacing(2), minWidth: 0 }),
});
