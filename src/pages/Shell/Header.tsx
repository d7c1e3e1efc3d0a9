import { memo, type ReactNode } from 'react';

import type { Live } from '../../client';
import { CopyLink, FullScreenButton } from '../../components/Present';
import { ClientVerdict, Imitation, SnapshotAge, Status } from '../../components/Status';
import { lastKnown } from '../../lib/known';
import { LINE, stylesOf } from '../../lib/styles';
import { LANE } from '../lane';
import { StartStop } from './StartStop';
import type { Booth } from './useBooth';

interface HeaderProps {
  booth: Booth;
  /** Further controls of a host behind the buttons. */
  tools?: ReactNode;
}

/** Title, state and buttons, above every page. */
export function Header({ booth: { title, subtitle, live }, tools }: HeaderProps) {
  const styles = useStyles();
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

/** Actions for the current view: full screen, and a link to share. */
export const ViewTools = memo(function ViewTools() {
  return (
    <>
      <FullScreenButton />
      <CopyLink />
    </>
  );
});

/** The state of the workload and its age, whether its cluster is real, and whether the load generator keeps up. */
export function Present({ live }: { live: Live }) {
  const styles = useStyles();
  return (
    <div className={styles.present}>
      <div className={styles.first}>
        <Status live={live} lane={LANE} oneLine />
        <span className={styles.age}>
          <SnapshotAge state={live.state} />
        </span>
      </div>
      <div className={styles.second}>
        <Imitation lane={lastKnown(live, LANE)?.lane} />
        <ClientVerdict state={live.state} />
      </div>
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  header: {
    ...LINE,
    gap: theme.spacing(1, 3),
    padding: theme.spacing(1.5, 0, 0.5),
    [theme.breakpoints.down('sm')]: { gap: theme.spacing(0.5), padding: theme.spacing(1, 0, 0) },
  },
  titles: { flex: '1 1 28ch', minWidth: 0 },
  title: {
    fontSize: `clamp(${theme.typography.h4.fontSize}, 1.4vw, ${theme.typography.h3.fontSize})`,
    lineHeight: 1.25,
    margin: 0,
    [theme.breakpoints.down('sm')]: { fontSize: theme.typography.h5.fontSize },
  },
  subtitle: {
    margin: 0,
    color: theme.colors.text.secondary,
    [theme.breakpoints.down('sm')]: { display: 'none' },
  },
  // Neither the length of a text nor its lines move what is below.
  present: { width: '52ch', minWidth: 0, maxWidth: '100%', fontVariantNumeric: 'tabular-nums' },
  first: { display: 'flex', alignItems: 'baseline', gap: theme.spacing(1.5), '& > div': { minWidth: 0 } },
  second: {
    display: 'flex',
    alignItems: 'center',
    gap: theme.spacing(0, 1),
    minHeight: theme.spacing(3),
    whiteSpace: 'nowrap',
    '& > *': { flex: 'none' },
    '& > [title]': { flex: '0 1 auto', overflow: 'hidden', textOverflow: 'ellipsis' },
  },
  // A phone has no room for the details of the state once a warning is shown.
  age: { flex: 'none', [theme.breakpoints.down('sm')]: { display: 'none' } },
  actions: {
    ...LINE,
    gap: theme.spacing(1),
    '@media print': { display: 'none' },
  },
}));
