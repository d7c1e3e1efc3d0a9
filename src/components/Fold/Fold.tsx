import { useId, useState, type PropsWithChildren, type ReactNode } from 'react';

import { Button } from '@grafana/ui';

interface FoldProps {
  label: string;
  /** The label while it is open; by default, the same. */
  openLabel?: string;
  /** Whether the button looks like one. */
  isSolid?: boolean;
  /** Whether it is open, whatever the reader has chosen. */
  isForced?: boolean;
  /** What is beside the button. */
  beside?: ReactNode;
}

/** A button that opens and closes its content. Closed content is not rendered. */
export function Fold(props: PropsWithChildren<FoldProps>) {
  const { label, openLabel = label, isSolid, isForced = false, beside, children } = props;
  const id = useId();
  const [isAsked, setAsked] = useState(false);
  const isOpen = isAsked || isForced;
  return (
    <div>
      <Button
        type="button"
        variant="secondary"
        fill={isSolid ? 'solid' : 'text'}
        size="sm"
        icon={isOpen ? 'angle-down' : 'angle-right'}
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setAsked(!isOpen)}
      >
        {isOpen ? openLabel : label}
      </Button>
      {beside}
      {isOpen && <div id={id}>{children}</div>}
    </div>
  );
}
