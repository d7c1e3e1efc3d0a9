import { useId, useState, type PropsWithChildren } from 'react';

import { Button } from '@grafana/ui';

interface FoldProps {
  label: string;
  /** The label while it is open; by default, the same. */
  openLabel?: string;
  /** Whether the button looks like one. */
  isSolid?: boolean;
}

/** A button that opens and closes its content. Closed content is not rendered. */
export function Fold({ label, openLabel = label, isSolid, children }: PropsWithChildren<FoldProps>) {
  const id = useId();
  const [isOpen, open] = useState(false);
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
        onClick={() => open(!isOpen)}
      >
        {isOpen ? openLabel : label}
      </Button>
      {isOpen && <div id={id}>{children}</div>}
    </div>
  );
}
