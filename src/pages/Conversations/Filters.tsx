import { useEffect, useId, useRef, useState } from 'react';

import { Combobox, Input } from '@grafana/ui';

import { limits, type ConversationStatus } from '../../client';
import { stylesOf } from '../../lib/styles';
import { looks } from './StatusBadge';
import type { Filter } from './useConversations';

/** The pause after typing before the text is applied, in milliseconds. */
export const TYPING = 300;

interface FiltersProps {
  filter: Filter;
  /** The existing lanes. One alone is not offered. */
  lanes: string[];
  onChange(filter: Filter): void;
}

const options = [
  { value: '', label: 'All' },
  ...Object.entries(looks).map(([value, { word, meaning }]) => ({ value, label: word, description: meaning })),
];

/** The filters of the list: by status, and by a part of the topic. */
export function Filters({ filter, lanes, onChange }: FiltersProps) {
  const styles = useStyles();
  const lane = useId();
  const status = useId();
  const topic = useId();
  return (
    <div className={styles.filters}>
      {lanes.length > 1 && (
        <div className={styles.filter}>
          <label htmlFor={lane}>Lane</label>
          <Combobox
            id={lane}
            width={14}
            options={lanes.map((value) => ({ value, label: value }))}
            value={filter.lane}
            onChange={({ value }) => onChange({ ...filter, lane: value })}
          />
        </div>
      )}
      <div className={styles.filter}>
        <label htmlFor={status}>Status</label>
        <Combobox
          id={status}
          width={20}
          options={options}
          value={filter.status ?? ''}
          onChange={({ value }) => onChange({ ...filter, status: asStatus(value) })}
        />
      </div>
      <div className={styles.filter}>
        <label htmlFor={topic}>Topic</label>
        <Topic
          id={topic}
          value={filter.topic ?? ''}
          onChange={(text) => onChange({ ...filter, topic: text || undefined })}
        />
      </div>
    </div>
  );
}

/** Returns a status, where the text is one. */
export function asStatus(text: string | null): ConversationStatus | undefined {
  return text !== null && Object.hasOwn(looks, text) ? (text as ConversationStatus) : undefined;
}

interface TopicProps {
  id: string;
  value: string;
  onChange(value: string): void;
}

function Topic({ id, value, onChange }: TopicProps) {
  const [typed, setTyped] = useState<string>();
  const timer = useRef<ReturnType<typeof setTimeout>>();
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (text: string) => {
    setTyped(text);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      setTyped(undefined);
      onChange(text.trim());
    }, TYPING);
  };
  return (
    <Input
      id={id}
      type="search"
      width={28}
      maxLength={limits['conversations.topic'].max}
      placeholder="Any part of it"
      value={typed ?? value}
      onChange={(event) => type(event.currentTarget.value)}
    />
  );
}

const useStyles = stylesOf((theme) => ({
  filters: { display: 'flex', flexWrap: 'wrap', alignItems: 'center', gap: theme.spacing(1) },
  filter: { display: 'flex', alignItems: 'center', gap: theme.spacing(1), minWidth: 0 },
}));
