import { useState } from 'react';

import { Button, InlineField, InlineSwitch } from '@grafana/ui';

import { stylesOf, WRAP } from '../../lib/styles';
import { keyOf, type Assignments, type Decision } from './routing';
import { DecisionList } from './DecisionList';
import { Detail } from './Detail';
import { Totals } from './Totals';

interface DecisionsProps {
  /** Newest first; not empty. */
  decisions: Decision[];
  dealt: Assignments;
  /** The pinned decision; without one, the newest is shown. */
  pinned?: Decision;
  onPin(decision: Decision | undefined): void;
}

/** Latest decisions, one of them in full. */
export function Decisions({ decisions, dealt, pinned, onPin }: DecisionsProps) {
  const styles = useStyles();
  const [compare, setCompare] = useState(false);
  const shown = pinned ?? decisions[0];
  const instead = decisions[0].mode === 'kv' ? 'Round-robin' : 'Lowest cost';
  return (
    <div className={styles.row}>
      <div className={styles.list}>
        <div className={styles.head}>
          <span>{pinned ? 'Pinned' : 'Following the newest; select one to pin it'}</span>
          {pinned && (
            <Button variant="secondary" size="sm" onClick={() => onPin(undefined)}>
              Follow the newest
            </Button>
          )}
        </div>
        <DecisionList
          decisions={decisions}
          dealt={dealt}
          instead={compare ? instead : undefined}
          selected={keyOf(shown)}
          onPin={onPin}
        />
        <div className={styles.compare}>
          <InlineField label={`What ${instead.toLowerCase()} would have done`} transparent>
            <InlineSwitch
              id="kvrouting-instead"
              value={compare}
              onChange={(event) => setCompare(event.currentTarget.checked)}
              transparent
            />
          </InlineField>
        </div>
        {compare && <Totals decisions={decisions} dealt={dealt} />}
      </div>
      <div className={styles.detail}>
        <Detail decision={shown} />
      </div>
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  row: { ...WRAP, gap: theme.spacing(2, 3) },
  list: { flex: '1 1 480px', minWidth: 0 },
  detail: { flex: '1 1 600px', minWidth: 0 },
  head: { display: 'flex', alignItems: 'center', justifyContent: 'space-between', minHeight: 32 },
  compare: { marginTop: theme.spacing(1) },
}));
