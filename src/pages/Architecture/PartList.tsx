import { memo, useState } from 'react';

import { Button } from '@grafana/ui';

import { stylesOf } from '../../lib/styles';
import { sentenceOf, type Part } from './parts';

/** The drawing as a list of sentences, for screen readers and for reading. */
export function PartList({ parts }: { parts: Part[] }) {
  const styles = useStyles();
  const [open, setOpen] = useState(false);
  return (
    <div>
      <Switch open={open} onToggle={setOpen} />
      {open && (
        <ul className={styles.list}>
          {parts.map((part) => (
            <li key={part.id}>
              <b>{sentenceOf(part)}.</b> {part.presence.why} {part.text}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

interface SwitchProps {
  open: boolean;
  onToggle(open: boolean): void;
}

/** Rendered again only when it changes: the numbers in the list change each second. */
const Switch = memo(function Switch({ open, onToggle }: SwitchProps) {
  return (
    <Button
      variant="secondary"
      fill="text"
      size="sm"
      icon={open ? 'angle-down' : 'angle-right'}
      aria-expanded={open}
      onClick={() => onToggle(!open)}
    >
      The diagram as a list
    </Button>
  );
});

const useStyles = stylesOf((theme) => ({
  list: {
    margin: theme.spacing(1, 0, 0, 3),
    fontVariantNumeric: 'tabular-nums',
    '& b': { fontWeight: theme.typography.fontWeightMedium },
  },
}));
