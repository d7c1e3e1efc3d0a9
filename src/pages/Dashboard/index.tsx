import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import { Benchmark } from '../../components/Benchmark';
import { Comparison } from '../../components/Comparison';
import { Controls } from '../../components/Controls';
import { ImportButton } from '../../components/ImportBaseline';
import { Kpis } from '../../components/Kpis';
import { Section } from '../../components/Section';
import { Workers } from '../../components/Workers';
import { LANE } from '../lane';
import { useChoice } from '../useChoice';
import { HistoryExport } from './HistoryExport';

/** The main view: live against recorded, key figures, the recorded results, and what serves. */
export default function Dashboard() {
  const styles = useStyles2(getStyles);
  const comparison = useChoice('compare');
  const benchmark = useChoice('benchmark');
  const levels = useChoice('levels');
  return (
    <div className={styles.page}>
      <Section
        title="Live against baseline"
        info="Latencies and rates of the running workload, beside recorded results at the same concurrency. Live figures are measured by the load generator since this step settled, over five minutes at most; recorded ones come from the baseline that is named here."
      >
        <div className={styles.parts}>
          <Controls lane={LANE} bare />
          <Comparison lane={LANE} bare choice={comparison} />
        </div>
      </Section>
      <Section
        title="Key figures"
        info="Rates of the last 60 seconds, and totals since the workload's last start, measured by the load generator; the queue and, where clients are not told, the cache hits come from the cluster's metrics. Below stands what the baseline recorded at this concurrency, with how it was found."
        actions={<HistoryExport />}
      >
        <Kpis lane={LANE} />
      </Section>
      <Section
        title="Recorded benchmark"
        info="Latencies and rates that were recorded at each level under round-robin and under KV-aware routing, how much better KV-aware routing was, and the same as curves against concurrency: at the levels of the slider, as far as they have every figure, or at all. All of it was measured earlier, on the deployment that the baseline names; none of it changes with the live workload."
        actions={<ImportButton lane={LANE} />}
      >
        <Benchmark lane={LANE} choice={benchmark} levels={levels} />
      </Section>
      <Section
        title="Infrastructure"
        info="The workers of the serving cluster, with their GPUs, queues and caches. The numbers come from the cluster's own metrics, through Prometheus where there is one, and are a few seconds old at most."
      >
        <Workers lane={LANE} />
      </Section>
    </div>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  page: css({ display: 'flex', flexDirection: 'column', gap: theme.spacing(2) }),
  parts: css({ display: 'flex', flexDirection: 'column', gap: theme.spacing(2) }),
});
