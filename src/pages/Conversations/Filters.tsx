import { useEffect, useId, useRef, useState } from 'react';

import { Input } from '@grafana/ui';

import { limits, type ConversationStatus } from '../../client';
import { Choice } from '../../components/Choice';
import { LINE, stylesOf } from '../../lib/styles';
import { LANE } from '../lane';
import { SpanButton } from '../SpanButton';
import { spanOf } from '../span';
import { looks } from './StatusBadge';
import type { Filter } from './useConversations';

/** The pause after typing before the text is applied, in milliseconds. */
const TYPING = 300;

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
  const topic = useId();
  return (
    <div className={styles.filters}>
      <SpanButton span={filter} onClear={() => onChange({ ...filter, from: undefined, to: undefined })} />
      {lanes.length > 1 && (
        <Choice
          label="Lane"
          width={14}
          options={lanes.map((value) => ({ value, label: value }))}
          value={filter.lane}
          onChange={(lane) => onChange({ ...filter, lane })}
        />
      )}
      <Choice
        label="Status"
        width={20}
        options={options}
        value={filter.status ?? ''}
        onChange={(status) => onChange({ ...filter, status: asStatus(status) })}
      />
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
function asStatus(text: string | null): ConversationStatus | undefined {
  return text !== null && Object.hasOwn(looks, text) ? (text as ConversationStatus) : undefined;
}

function Topic({ id, value, onChange }: { id: string; value: string; onChange(value: string): void }) {
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

/** Parses the filter of an address's query. */
export function filterOf(params: URLSearchParams): Filter {
  return {
    ...spanOf(params),
    lane: params.get('lane') || LANE,
    status: asStatus(params.get('status')),
    topic: params.get('topic') || undefined,
    order: params.get('order') || undefined,
  };
}

/** Returns the query of a filter, with its question mark; empty without a filter. */
export function queryOf({ from, to, lane, status, topic, order }: Filter): string {
  const params = new URLSearchParams({
    ...(from && to && { from: String(from), to: String(to) }),
    ...(lane !== LANE && { lane }),
    ...(status && { status }),
    ...(topic && { topic }),
    ...(order && { order }),
  }).toString();
  return params && `?${params}`;
}

const useStyles = stylesOf((theme) => ({
  filters: { ...LINE, gap: theme.spacing(1) },
  filter: { display: 'flex', alignItems: 'center', gap: theme.spacing(1), minWidth: 0 },
}));
