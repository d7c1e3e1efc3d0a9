import { readHistory, useClient, type History } from '../../client';
import { Benchmark } from '../../components/Benchmark';
import { ByTurn } from '../../components/ByTurn';
import { Comparison } from '../../components/Comparison';
import { Controls } from '../../components/Controls';
import { ExportButton } from '../../components/Export';
import { LaneHeadline } from '../../components/Headline';
import { ImportButton } from '../../components/ImportBaseline';
import { Kpis } from '../../components/Kpis';
import { Members } from '../../components/Members';
import { Section } from '../../components/Section';
import { Workers } from '../../components/Workers';
import { toCsv } from '../../lib/csv';
import { COLUMN, stylesOf, WALL, WIDE } from '../../lib/styles';
import { LANE } from '../lane';
import { useChoice } from '../useChoice';
import { LiveCharts } from './LiveCharts';

/**
 * The main view: the result of the step in one sentence, the last ten minutes, live against recorded, key figures, TTFT
 * by turn, the recorded results, the workers, and the members where there are several.
 */
export default function Dashboard() {
  const styles = useStyles();
  const comparison = useChoice('compare');
  const benchmark = useChoice('benchmark');
  const levels = useChoice('levels');
  return (
    <div className={styles.page}>
      <div className={styles.headline}>
        <LaneHeadline lane={LANE} />
      </div>
      <div className={styles.live}>
        <Section
          title="Live"
          info={
            'The last ten minutes of the running workload, each point over the 60 seconds before it, ' +
            'and TTFT by turn over the last 60 seconds, measured by the load generator. Without ' +
            'cached tokens in the responses, the hit rate comes from the cluster’s metrics. Drag ' +
            'over a curve to zoom in; double-click to zoom out.'
          }
        >
          <LiveCharts />
        </Section>
      </div>
      <div className={styles.now}>
        <Section
          title="Live against baseline"
          info={
            'Latencies and rates of the running workload next to recorded results at the same ' +
            'concurrency. The load generator measures live figures from when this step settled, over ' +
            'an hour at most; recorded ones come from the baseline named here.'
          }
        >
          <div className={styles.parts}>
            <Controls lane={LANE} bare />
            <Comparison lane={LANE} bare choice={comparison} />
          </div>
        </Section>
        <Section
          title="Key figures"
          info={
            'Rates over the last 60 seconds and totals since the workload was last started, measured ' +
            'by the load generator. Others call requests/s RPS and output tokens/s TOPS. The queue ' +
            "comes from the cluster's metrics, and so do the cache hits if the responses do not " +
            "include them. Below each figure is the baseline's value at this concurrency and how it " +
            'was obtained.'
          }
          actions={<HistoryExport />}
        >
          <Kpis lane={LANE} />
        </Section>
        <Section
          title="TTFT by turn"
          info={
            'Time to first token of the first turn of a conversation, the second and so on, over the ' +
            'last 60 seconds, measured by the load generator, with the tokens and latencies of each. ' +
            'Every turn sends the whole conversation again, so the input grows; where requests go to ' +
            'the worker that has it cached, TTFT falls after the first turn all the same.'
          }
        >
          <ByTurn lane={LANE} />
        </Section>
      </div>
      <div className={styles.recorded}>
        <Section
          title="Recorded benchmark"
          info={
            'Latencies and rates recorded at each level under round-robin and KV-aware routing, and ' +
            'the improvement from KV-aware routing, as tables and as curves by concurrency. Shown ' +
            "are the slider's levels that have every figure, or all levels. Everything was measured " +
            "earlier on the baseline's deployment and does not change with the live workload."
          }
          actions={<ImportButton lane={LANE} />}
        >
          <Benchmark lane={LANE} choice={benchmark} levels={levels} />
        </Section>
      </div>
      <div className={styles.cluster}>
        <Section
          title="Infrastructure"
          info={
            'The workers of the cluster with their GPUs, queues and caches. The numbers come from ' +
            "the cluster's own metrics, through Prometheus if there is one, and are at most a few " +
            'seconds old.'
          }
        >
          <Workers lane={LANE} />
        </Section>
        <Members lane={LANE} />
      </div>
    </div>
  );
}

/** Each part keeps its place on screens with room for two or three columns, whatever the height of the others. */
/** Exports the last ten minutes of the workload, second by second, as a file. */
function HistoryExport() {
  const client = useClient();
  const read = () => readHistory(client, LANE);
  return (
    <ExportButton
      label="Export the last ten minutes"
      files={[
        {
          label: 'Last ten minutes as CSV',
          of: 'history',
          format: 'csv',
          text: async () => historyCsv(await read()),
        },
        {
          label: 'Last ten minutes as JSON',
          of: 'history',
          format: 'json',
          text: async () => JSON.stringify(await read(), undefined, 2),
        },
      ]}
    />
  );
}

const names = [
  'time',
  'running',
  'concurrency',
  'mode',
  'speculation',
  'ttft_p50',
  'ttft_p95',
  'output_tokens_per_second',
  'kv_hit_ratio',
] as const;

/** Writes a line a second, oldest first; TTFT in seconds. */
function historyCsv({ points }: History): string {
  return toCsv(
    [...names],
    points.map((point) => names.map((name) => point[name]))
  );
}

const useStyles = stylesOf((theme) => {
  const part = { display: 'flex', flexDirection: 'column' as const, gap: theme.spacing(2), minWidth: 0 };
  return {
    page: {
      display: 'grid',
      gridTemplateColumns: 'minmax(0, 1fr)',
      gap: theme.spacing(2),
      [WIDE]: {
        alignItems: 'start',
        gridTemplateAreas: '"headline headline" "live live" "now recorded" "cluster recorded"',
        gridTemplateColumns: 'repeat(2, minmax(0, 1fr))',
        gridTemplateRows: 'auto auto auto 1fr',
      },
      [WALL]: {
        gridTemplateAreas: '"headline headline headline" "live live live" "now recorded cluster"',
        gridTemplateColumns: 'repeat(3, minmax(0, 1fr))',
        gridTemplateRows: 'auto auto auto',
      },
    },
    headline: { minWidth: 0, '&:empty': { display: 'none' }, [WIDE]: { gridArea: 'headline' } },
    live: { ...part, [WIDE]: { gridArea: 'live' } },
    now: { ...part, [WIDE]: { gridArea: 'now' } },
    recorded: { ...part, [WIDE]: { gridArea: 'recorded' } },
    cluster: { ...part, [WIDE]: { gridArea: 'cluster' } },
    parts: { ...COLUMN, gap: theme.spacing(2) },
  };
});
