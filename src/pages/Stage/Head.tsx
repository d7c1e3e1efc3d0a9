import { cx } from '@emotion/css';

import type { Live } from '../../client';
import { Imitation, Status } from '../../components/Status';
import { DASH, plain } from '../../lib/format';
import { valueOf, type Level } from '../../lib/level';
import { cachesText } from '../../lib/names';
import { LINE, LOW, NARROW, stylesOf, WRAP } from '../../lib/styles';
import { LANE } from '../lane';
import { knownOf } from './model';

interface HeadProps {
  live: Live;
  /** The mode, or those of both routers. */
  title: string;
  /** The level in force, or the one that the operator has requested. */
  concurrency?: Level;
}

/** The mode, the number of conversations, and the state of the workload; dimmed during a loss. */
export function Head({ live, title, concurrency }: HeadProps) {
  const styles = useStyles();
  const lane = knownOf(live)?.lane;
  return (
    <header className={cx(styles.head, !live.lane && styles.past)}>
      <h1 className={styles.title}>{title}</h1>
      <div className={styles.concurrency}>
        <b>{concurrency === undefined ? DASH : plain(valueOf(concurrency))}</b> conversations
        {typeof concurrency === 'string' && '/s'}
      </div>
      <div className={styles.status}>
        <Status live={live} lane={LANE} unnamed />
        <div className={styles.second}>
          {lane && <span>{cachesText(lane.state)}</span>}
          <Imitation lane={lane} />
        </div>
      </div>
    </header>
  );
}

const useStyles = stylesOf((theme) => ({
  head: { ...WRAP, alignItems: 'baseline', gap: '0 1.6em', lineHeight: 1.1 },
  // On a phone, the tools are at its right.
  title: {
    fontSize: '3em',
    lineHeight: 1.1,
    margin: 0,
    [NARROW]: { paddingRight: 160 },
    [LOW]: { fontSize: '2em', paddingRight: 0 },
  },
  concurrency: {
    fontSize: '1.8em',
    color: theme.colors.text.secondary,
    fontVariantNumeric: 'tabular-nums',
    '& b': { fontSize: '1.67em', fontWeight: theme.typography.fontWeightBold, color: theme.colors.text.primary },
    [LOW]: { fontSize: '1.2em' },
  },
  past: { '&& h1, && b': { color: theme.colors.text.secondary } },
  status: {
    ...LINE,
    gap: '0 0.8em',
    marginLeft: 'auto',
    fontSize: '1.6em',
    lineHeight: 1.3,
    '& [aria-hidden="true"]': { width: '0.6em', height: '0.6em' },
    [NARROW]: { marginLeft: 0 },
    [LOW]: { marginLeft: 'auto', fontSize: '1.2em' },
  },
  second: {
    display: 'flex',
    gap: '0.6em',
    color: theme.colors.text.secondary,
    '& > div': { fontSize: '0.9em', lineHeight: 1.4 },
  },
}));
