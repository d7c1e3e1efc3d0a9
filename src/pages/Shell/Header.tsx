import React, { type ReactNode } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Live } from '../../client';
import { CopyLink, FullScreenButton } from '../../components/Present';
import { ClientVerdict, Imitation, SnapshotAge, Status } from '../../components/Status';
import { lastKnown } from '../../lib/known';
import { LANE } from '../lane';
import { StartStop } from './StartStop';
import type { Booth } from './useBooth';

interface HeaderProps {
  booth: Booth;
  /** What a host adds behind the buttons. */
  tools?: ReactNode;
}

/** Title, state and buttons, above every page. */
export function Header({ booth: { title, subtitle, live }, tools }: HeaderProps) {
  const styles = useStyles2(getStyles);
  return (
    <header className={styles.header}>
      <div className={styles.titles}>
        <h1 className={styles.title}>{title}</h1>
        {subtitle && <p className={styles.subtitle}>{subtitle}</p>}
      </div>
      <Present live={live} />
      <div className={styles.actions}>
        <StartStop live={live} />
        <ViewTools />
        {tools}
      </div>
    </header>
  );
}

/** What one may do with what is seen: fill the screen with it, and send it to somebody. */
export function ViewTools() {
  return (
    <>
      <FullScreenButton />
      <CopyLink />
    </>
  );
}

/** What the workload does, how old that word is, whether its cluster is real and the load generator keeps up. */
export function Present({ live }: { live: Live }) {
  const styles = useStyles2(getStyles);
  return (
    <div className={styles.present}>
      <Status live={live} lane={LANE} />
      <div className={styles.second}>
        <SnapshotAge state={live.state} />
        <ClientVerdict state={live.state} />
        <Imitation lane={lastKnown(live, LANE)?.lane} />
      </div>
    </div>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  header: css({
    display: 'flex',
    flexWrap: 'wrap',
    alignItems: 'center',
    gap: theme.spacing(1, 3),
    padding: theme.spacing(1.5, 0, 0.5),
  }),
  titles: css({ flex: '1 1 28ch', minWidth: 0 }),
  title: css({ fontSize: theme.typography.h3.fontSize, lineHeight: 1.25, margin: 0 }),
  subtitle: css({ margin: 0, color: theme.colors.text.secondary }),
  present: css({ minWidth: '22ch', fontVariantNumeric: 'tabular-nums' }),
  second: css({ display: 'flex', flexWrap: 'wrap', alignItems: 'center', gap: theme.spacing(0.5, 1) }),
  actions: css({ display: 'flex', flexWrap: 'wrap', alignItems: 'center', gap: theme.spacing(1) }),
});
