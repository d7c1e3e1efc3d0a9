import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Live } from '../../client';
import { Imitation, Status } from '../../components/Status';
import { DASH, number, span } from '../../lib/format';
import { modeName, speculationName } from '../../lib/names';
import { useAge } from '../../lib/useNow';
import { LANE } from '../lane';
import { errorMark, knownOf } from './model';

interface HeadProps {
  live: Live;
  /** What is in force, or what the operator wants. */
  concurrency?: number;
}

/** What runs: the mode, how many conversations, and what the workload is doing. */
export function Head({ live, concurrency }: HeadProps) {
  const styles = useStyles2(getStyles);
  const { lane } = live;
  const state = lane?.state;
  const mark = errorMark(live);
  const spec = state && state.speculation !== 'off' && state.speculation !== 'not_recorded';
  return (
    <header className={styles.head}>
      <h1 className={styles.title}>
        <span>{state ? modeName(state.mode) : DASH}</span>{' '}
        {spec && <small className={styles.small}>{speculationName(state.speculation)}</small>}
      </h1>
      <div className={styles.concurrency}>
        <b>{number(lane && concurrency)}</b> concurrent conversations
      </div>
      <div className={styles.status}>
        <Status live={live} lane={LANE} />
        <div className={styles.second}>
          <Imitation lane={knownOf(live)?.lane} />
          {mark && <small title={mark.title}>{mark.text}</small>}
          {live.state.status === 'live' && <Stale receivedAt={live.state.receivedAt} />}
        </div>
      </div>
    </header>
  );
}

/** The age in seconds from which a snapshot is worth a word: one a second is due. */
const OLD = 2;

function Stale({ receivedAt }: { receivedAt: number }) {
  const age = useAge(receivedAt);
  return age >= OLD ? <span>Last snapshot {span(age)} ago</span> : null;
}

const getStyles = (theme: GrafanaTheme2) => ({
  head: css({ display: 'flex', flexWrap: 'wrap', alignItems: 'baseline', gap: '0 2.4em', lineHeight: 1.1 }),
  title: css({ fontSize: '5em', lineHeight: 1.1, margin: 0, '@media (max-width: 600px)': { fontSize: '3em' } }),
  small: css({ fontSize: '0.45em', color: theme.colors.text.secondary }),
  concurrency: css({
    fontSize: '2.2em',
    color: theme.colors.text.secondary,
    fontVariantNumeric: 'tabular-nums',
    '& b': { fontSize: '2.27em', fontWeight: theme.typography.fontWeightBold, color: theme.colors.text.primary },
    '@media (max-width: 600px)': { fontSize: '1.6em', '& b': { fontSize: '1.9em' } },
  }),
  status: css({
    marginLeft: 'auto',
    fontSize: '1.8em',
    lineHeight: 1.3,
    '& [aria-hidden="true"]': { width: '0.6em', height: '0.6em' },
    '@media (max-width: 600px)': { marginLeft: 0 },
  }),
  second: css({
    display: 'flex',
    gap: '0.6em',
    color: theme.colors.text.secondary,
    '& > div': { fontSize: '0.85em', lineHeight: 1.4 },
  }),
});
