import { readHistory, useClient, type History } from '../../client';
import { Benchmark } from '../../components/Benchmark';
import { ByTurn } from '../../components/ByTurn';
import { Comparison } from '../../components/Comparison';
import { Controls } from '../../components/Controls';
import { ExportButton, type ExportFile } from '../../components/Export';
import { Fold } from '../../components/Fold';
import { LaneHeadline } from '../../components/Headline';
import { ImportButton } from '../../components/ImportBaseline';
import { Kpis, Percentiles } from '../../components/Kpis';
import { Members } from '../../components/Members';
import { Section } from '../../components/Section';
import { Workers } from '../../components/Workers';
import { toCsv } from '../../lib/csv';
import { COLUMN, sectionGrid, stylesOf, WALL, WIDE, WRAP } from '../../lib/styles';
import { LANE } from '../lane';
import { useChoice } from '../useChoice';
import { LiveCharts } from './LiveCharts';

/**
 * The main view: the result of the step in one sentence and live against recorded in the first screen; below them the
 * last ten minutes with TTFT by turn, key figures, the workers, the recorded results, and the members where there are
 * several.
 */
export default function Dashboard() {
  const styles = useStyles();
  const comparison = useChoice('compare');
  const benchmark = useChoice('benchmark');
  const levels = useChoice('levels');
  return (
    <div className={styles.page}>
      <div className={styles.first}>
        <LaneHeadline lane={LANE} />
        <Section
          title="Live against baseline"
          info={
            'The running workload next to recorded results at the same concurrency. Live figures are those of ' +
            'this step since it settled, over an hour at most, measured by the load generator.'
          }
        >
          <div className={styles.parts}>
            <Comparison lane={LANE} bare choice={comparison} />
            <Controls lane={LANE} bare />
          </div>
        </Section>
      </div>
      <div className={styles.live}>
        <Section
          title="Live"
          info={
            'Each point is over the 60 s before it, measured by the load generator; dotted and gray until the step ' +
            'has settled. Every turn sends the whole conversation again, so its prompt is longer than the one ' +
            'before. Drag over a curve to zoom in; double-click to zoom out.'
          }
          actions={<HistoryExport />}
        >
          <LiveCharts />
          <div className={styles.folds}>
            <Fold label="TTFT, tokens and latency by turn">
              <ByTurn lane={LANE} />
            </Fold>
            <Fold label="Percentiles of the last 60 s">
              <Percentiles lane={LANE} />
            </Fold>
          </div>
        </Section>
      </div>
      <div className={styles.more}>
        <Section
          title="Key figures"
          info={
            'Counts since the workload was last started, measured by the load generator. The queue comes from ' +
            'the cluster’s metrics.'
          }
        >
          <Kpis lane={LANE} />
        </Section>
        <Section
          title="Infrastructure"
          info={
            'The workers with their GPUs, queues and caches. The numbers come from the cluster’s own metrics, ' +
            'through Prometheus if there is one, and are at most a few seconds old.'
          }
        >
          <Workers lane={LANE} />
        </Section>
        <Section
          title="Recorded benchmark"
          info={
            'Recorded at each level under round-robin and KV-aware routing, on the baseline’s deployment; it does ' +
            'not change with the live workload. Shown are the slider’s levels that have every figure, or all.'
          }
          actions={<ImportButton lane={LANE} />}
        >
          <Fold label="Figures of each level" isForced={benchmark[0] !== undefined || levels[0] !== undefined}>
            <Benchmark lane={LANE} choice={benchmark} levels={levels} />
          </Fold>
        </Section>
        <Members lane={LANE} />
      </div>
    </div>
  );
}

/** Exports the last ten minutes of the workload, second by second, as a file. */
function HistoryExport() {
  const client = useClient();
  const file = (format: 'csv' | 'json', write: (history: History) => string): ExportFile => ({
    label: `Last ten minutes as ${format.toUpperCase()}`,
    of: 'history',
    format,
    text: async () => write(await readHistory(client, LANE)),
  });
  const files = [file('csv', historyCsv), file('json', (history) => JSON.stringify(history, undefined, 2))];
  return <ExportButton label="Export the last ten minutes" files={files} />;
}

const names = [
  'time',
  'running',
  'concurrency',
  'mode',
  'speculation',
  'ttft_mean',
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
  const part = { ...COLUMN, gap: theme.spacing(2), minWidth: 0 };
  return {
    page: sectionGrid(theme),
    first: { ...part, [WIDE]: { gridColumn: '1 / -1' }, [WALL]: { gridColumn: 'auto' } },
    live: part,
    more: part,
    folds: {
      ...WRAP,
      gap: theme.spacing(0, 2),
      '& > :has([aria-expanded="true"])': { flex: '1 1 560px', minWidth: 0 },
    },
    // The controls are beside the tables where there is room for both.
    parts: {
      ...WRAP,
      gap: theme.spacing(2),
      '& > :first-child': { flex: '3 1 860px' },
      '& > *': { flex: '1 1 370px', minWidth: 0 },
    },
  };
});
