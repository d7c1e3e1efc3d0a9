import { cx } from '@emotion/css';

import type { Live } from '../../client';
import { Imitation, Status } from '../../components/Status';
import { DASH, plain, span } from '../../lib/format';
import { valueOf, type Level } from '../../lib/level';
import { cachesText } from '../../lib/names';
import { LINE, stylesOf, WRAP } from '../../lib/styles';
import { useAge } from '../../lib/useNow';
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
          {live.state.status === 'live' && <Stale receivedAt={live.state.receivedAt} />}
        </div>
      </div>
    </header>
  );
}

/** The age in seconds from which a snapshot's age is shown. One snapshot a second is due. */
const OLD = 2;

function Stale({ receivedAt }: { receivedAt: number }) {
  const age = useAge(receivedAt);
  return age >= OLD ? <span>Last snapshot {span(age)} ago</span> : null;
}

const useStyles = stylesOf((theme) => ({
  head: { ...WRAP, alignItems: 'baseline', gap: '0 1.6em', lineHeight: 1.1 },
  // On a phone, the tools are at its right.
  title: { fontSize: '3em', lineHeight: 1.1, margin: 0, '@media (max-width: 600px)': { paddingRight: 160 } },
  concurrency: {
    fontSize: '1.8em',
    color: theme.colors.text.secondary,
    fontVariantNumeric: 'tabular-nums',
    '& b': { fontSize: '1.67em', fontWeight: theme.typography.fontWeightBold, color: theme.colors.text.primary },
  },
  past: { '&& h1, && b': { color: theme.colors.text.secondary } },
  status: {
    ...LINE,
    gap: '0 0.8em',
    marginLeft: 'auto',
    fontSize: '1.6em',
    lineHeight: 1.3,
    '& [aria-hidden="true"]': { width: '0.6em', height: '0.6em' },
    '@media (max-width: 600px)': { marginLeft: 0 },
  },
  second: {
    display: 'flex',
    gap: '0.6em',
    color: theme.colors.text.secondary,
    '& > div': { fontSize: '0.9em', lineHeight: 1.4 },
  },
}));
