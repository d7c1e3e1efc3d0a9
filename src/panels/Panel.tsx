import type { PropsWithChildren } from 'react';

import { ClientProvider } from '../client';
import { grafanaClient } from '../client/grafana';
import { Configured } from '../grafana/Configured';
import { stylesOf } from '../lib/styles';

interface PanelProps {
  /** The accessible name of a panel. */
  label: string;
}

/** The frame of each of our panels: it provides the client, and scrolls by keyboard. */
export function Panel({ label, children }: PropsWithChildren<PanelProps>) {
  const styles = useStyles();
  return (
    <ClientProvider client={grafanaClient}>
      <div className={styles.panel} tabIndex={0} role="group" aria-label={label}>
        <Configured>{children}</Configured>
      </div>
    </ClientProvider>
  );
}

const useStyles = stylesOf((theme) => ({
  panel: { height: '100%', overflow: 'auto', '& > section + section': { marginTop: theme.spacing(1) } },
}));
