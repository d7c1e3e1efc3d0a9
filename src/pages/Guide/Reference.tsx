import { memo, useEffect, useMemo, useState } from 'react';
import { useLocation } from 'react-router-dom';

import { COLUMN, stylesOf } from '../../lib/styles';
import type { Visitor } from './content/visitors';
import { Glossary } from './Glossary';
import type { Part } from './parse';
import { Questions } from './Questions';
import { likelyFirst, type Found } from './search';

const NO_IDS: string[] = [];

interface ReferenceProps {
  glossary: Part;
  found: Found;
  visitor: Visitor | undefined;
  isFiltered: boolean;
}

/** Questions and glossary, filtered by the search. */
export const Reference = memo(function Reference({ glossary, found, visitor, isFiltered }: ReferenceProps) {
  const styles = useStyles();
  const [opened, setOpened] = useState<ReadonlySet<string>>(() => new Set());
  const likely = visitor?.asks ?? NO_IDS;
  const ordered = useMemo(
    () => found.groups.map((group) => ({ ...group, questions: likelyFirst(group.questions, likely) })),
    [found, likely]
  );
  const target = useTarget();
  const [reached, setReached] = useState<string>();
  if (target !== reached) {
    setReached(target);
    setOpened((before) => (target ? new Set([...before, target]) : before));
  }
  return (
    <div className={styles.reference}>
      <Questions groups={ordered} likely={likely} open={opened} onOpen={setOpened} isFiltered={isFiltered} />
      <Glossary of={glossary} terms={found.terms} />
    </div>
  );
});

/** Scrolls to the part that the address names. The result is the id of a question to open. */
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

const useStyles = stylesOf((theme) => ({
  reference: { ...COLUMN, gap: theme.spacing(2), minWidth: 0 },
}));
