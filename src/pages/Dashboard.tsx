import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { PluginPage } from '@grafana/runtime';
import { useStyles2 } from '@grafana/ui';

import { useLive } from '../client';
import { Comparison } from '../components/Comparison';
import { Controls } from '../components/Controls';

/** The lane that the page shows. */
const LANE = 'main';

/** Controls and comparison, one under the other. */
export function Dashboard() {
  const styles = useStyles2(getStyles);
  const { state } = useLive(LANE);
  const { title, subtitle } = state.status === 'live' ? state.snapshot.settings : { title: '', subtitle: '' };
  return (
    <PluginPage pageNav={{ text: title || 'Dashboard' }} subTitle={subtitle}>
      <div className={styles.page}>
        <div className={styles.part}>
          <Controls lane={LANE} />
        </div>
        <div className={styles.part}>
          <Comparison lane={LANE} />
        </div>
      </div>
    </PluginPage>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  page: css({ display: 'flex', flexDirection: 'column', gap: theme.spacing(2) }),
  part: css({
    padding: theme.spacing(2),
    border: `1px solid ${theme.colors.border.weak}`,
    borderRadius: theme.shape.radius.default,
    background: theme.colors.background.primary,
  }),
});
