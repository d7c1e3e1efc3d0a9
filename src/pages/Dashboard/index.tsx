import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import { Benchmark } from '../../components/Benchmark';
import { ByTurn } from '../../components/ByTurn';
import { Comparison } from '../../components/Comparison';
import { Controls } from '../../components/Controls';
import { ImportButton } from '../../components/ImportBaseline';
import { Kpis } from '../../components/Kpis';
import { Members } from '../../components/Members';
import { Section } from '../../components/Section';
import { Workers } from '../../components/Workers';
import { LANE } from '../lane';
import { useChoice } from '../useChoice';
import { HistoryExport } from './HistoryExport';

/** The main view: live against recorded, key figures, TTFT by turn, the recorded results, what serves, and who holds the conversations where others do. */
export default function Dashboard() {
  const styles = useStyles2(getStyles);
  const comparison = useChoice('compare');
  const benchmark = useChoice('benchmark');
  const levels = useChoice('levels');
  return (
    <div className={styles.page}>
      <Section
        title="Live against baseline"
        info="Latencies and rates of the running workload next to recorded results at the same concurrency. The load generator measures live figures from when this step settled, over an hour at most; recorded ones come from the baseline named here."
      >
        <div className={styles.parts}>
          <Controls lane={LANE} bare />
          <Comparison lane={LANE} bare choice={comparison} />
        </div>
      </Section>
      <Section
        title="Key figures"
        info="Rates over the last 60 seconds and totals since the workload was last started, measured by the load generator. The queue comes from the cluster's metrics, and so do the cache hits if the responses do not include them. Below each figure is the baseline's value at this concurrency and how it was obtained."
        actions={<HistoryExport />}
      >
        <Kpis lane={LANE} />
      </Section>
      <Section
        title="TTFT by turn"
        info="Time to first token of the first turn of a conversation, the second and so on, over the last 60 seconds, measured by the load generator, with the tokens and latencies of each. Every turn sends the whole conversation again, so the input grows; where requests go to the worker that has it cached, TTFT falls after the first turn all the same."
      >
        <ByTurn lane={LANE} />
      </Section>
      <Section
        title="Recorded benchmark"
        info="Latencies and rates recorded at each level under round-robin and KV-aware routing, and the improvement from KV-aware routing, as tables and as curves by concurrency. Shown are the slider's levels that have every figure, or all levels. Everything was measured earlier on the baseline's deployment and does not change with the live workload."
        actions={<ImportButton lane={LANE} />}
      >
        <Benchmark lane={LANE} choice={benchmark} levels={levels} />
      </Section>
      <Section
        title="Infrastructure"
        info="The workers of the cluster with their GPUs, queues and caches. The numbers come from the cluster's own metrics, through Prometheus if there is one, and are at most a few seconds old."
      >
        <Workers lane={LANE} />
      </Section>
      <Members lane={LANE} />
    </div>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  page: css({ display: 'flex', flexDirection: 'column', gap: theme.spacing(2) }),
  parts: css({ display: 'flex', flexDirection: 'column', gap: theme.spacing(2) }),
});
