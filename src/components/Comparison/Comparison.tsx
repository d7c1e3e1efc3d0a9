import { useMemo, useState, type CSSProperties } from 'react';
import { cx } from '@emotion/css';

import { Alert } from '@grafana/ui';

import { useLive, type Comparison as Compared } from '../../client';
import { lastKnown, type Known } from '../../lib/known';
import { kindOf, levelText } from '../../lib/level';
import { servingName } from '../../lib/names';
import { COLUMN, LINE, stylesOf, WRAP } from '../../lib/styles';
import { useNarrow } from '../../lib/useNarrow';
import { useStable } from '../../lib/useStable';
import { Loading } from '../Loading';
import { Imitation, SnapshotAge, Status, Troubles } from '../Status';
import { ExportButton, type ExportFile } from '../Export';
import { CopyLink, type TimeSpan } from '../Present';
import { BaselineChooser } from './BaselineChooser';
import { Cautions } from './Cautions';
import { comparisonCsv, comparisonJson } from './exported';
import { Legend } from './Notes';
import { byPercentile, THIS_TARGET, toModel, type Hidden, type Model } from './model';
import { LARGE_TEXT, Table, type TextSize } from './Table';
import { useComparison } from './useComparison';

/** The options of a viewer. */
export interface ComparisonOptions extends Hidden {
  /** A baseline's name; empty for the load generator's own choice. */
  baseline?: string;
  size?: TextSize;
}

interface ComparisonProps extends ComparisonOptions {
  lane: string;
  /** Omits the line of state and the troubles, where another part of the page shows them. */
  bare?: boolean;
  /** The chosen baseline and its setter. Without one, the panel keeps the choice itself. */
  choice?: [chosen: string | undefined, choose: (name: string | undefined) => void];
  /** The time range of the surrounding dashboard, which adds a link to share. */
  span?(): TimeSpan;
}

/** The live step beside recorded results at the same concurrency. */
export function Comparison(props: ComparisonProps) {
  const { lane, baseline = '', size = 'normal', hideKV, hideRoundRobin, bare, choice, span: shown } = props;
  const styles = useStyles();
  const live = useLive(lane);
  const known = lastKnown(live, lane);
  const Box = bare ? 'div' : 'section';
  const own = useState<string>();
  const [chosen, choose] = choice ?? own;
  const wanted = chosen ?? baseline;
  const { comparison, problem } = useComparison(known?.lane, live.lane !== undefined, wanted);
  const client = live.state.status === 'live' ? live.state.snapshot.client : undefined;
  const exported = known && comparison && { comparison, known, isLive: live.lane !== undefined, client };
  const csv = useStable(() => (exported ? comparisonCsv(exported) : ''));
  const json = useStable(() => (exported ? comparisonJson(exported) : ''));
  const files = useMemo(
    (): ExportFile[] => [
      { label: 'Figures as CSV', of: 'comparison', format: 'csv', text: csv },
      { label: 'Everything as JSON', of: 'comparison', format: 'json', text: json },
    ],
    [csv, json]
  );
  return (
    <Box className={styles.comparison} aria-label={bare ? undefined : 'Live against baseline'}>
      {!bare && (
        <>
          <div className={styles.head}>
            <Status live={live} lane={lane} />
            <div className={styles.present}>
              <Imitation lane={known?.lane} />
              <SnapshotAge state={live.state} />
            </div>
          </div>
          <Troubles live={live} />
        </>
      )}
      {live.state.status === 'loading' && <Loading text="Waiting for the first snapshot…" />}
      {known && (
        <div className={styles.head}>
          <div className={cx(styles.title, size === 'large' && styles.largeTitle)}>
            {comparison && titleOf(known, comparison)}
          </div>
          <div className={styles.present}>
            <BaselineChooser chosen={chosen} title={comparison?.title} onChoose={choose} />
            <ExportButton label="Export the comparison" disabled={!comparison} files={files} />
            {shown && <CopyLink size="sm" span={shown} />}
          </div>
        </div>
      )}
      {problem && live.lane && (
        <Alert severity="error" title={`Cannot compare with “${wanted}”`} bottomSpacing={0}>
          {problem}
        </Alert>
      )}
      {known && !comparison && !problem && (
        <p>
          {live.lane ? 'Loading the comparison…' : 'The comparison appears once the load generator responds again.'}
        </p>
      )}
      {known && comparison && (
        <Body
          known={known}
          comparison={comparison}
          isLive={live.lane !== undefined}
          size={size}
          hideKV={hideKV}
          hideRoundRobin={hideRoundRobin}
        />
      )}
    </Box>
  );
}

interface BodyProps extends Hidden {
  known: Known;
  comparison: Compared;
  isLive: boolean;
  size: TextSize;
}

function Body({ known, comparison, isLive, size, hideKV, hideRoundRobin }: BodyProps) {
  const styles = useStyles();
  const { lane, settings, time } = known;
  const runs = isLive && lane.state.phase === 'running';
  const model = useMemo(
    () => toModel({ comparison, lane: isLive ? lane : undefined, settings, time, hideKV, hideRoundRobin }),
    [comparison, lane, isLive, settings, time, hideKV, hideRoundRobin]
  );
  const [place, narrow] = useNarrow(NARROW);
  return (
    <div className={styles.body} ref={place}>
      <div className={cx(styles.tables, size === 'large' && styles.largeTables)} style={columns(model)}>
        <div className={styles.rates}>
          <Table
            caption="Mean TTFT and rates, live and recorded"
            corner="Figure"
            nameWidth="8.6em"
            table={model.rates}
            size={size}
          />
        </div>
        <div className={styles.latencies}>
          {(narrow ? byPercentile(model.latencies) : [model.latencies]).map((table, i) => (
            <Table
              key={i}
              caption={`Latencies, live and recorded${narrow ? `, ${percentiles[i]}` : ''}`}
              corner="Latency"
              nameWidth="6.2em"
              table={table}
              size={size}
            />
          ))}
        </div>
      </div>
      <Cautions known={known} comparison={comparison} isLive={isLive} />
      {model.sources.length === 0 && <NothingToCompare comparison={comparison} />}
      <Legend
        model={model}
        slo={settings.slo}
        settling={runs && comparison.settling}
        seconds={runs ? comparison.seconds : 0}
      />
    </div>
  );
}

/** The width below which p50 and p95 are in separate tables, in pixels. */
const NARROW = 440;

const percentiles = ['p50', 'p95'];

/** The number of value columns of the widest table, for its style. */
function columns({ latencies }: Model): CSSProperties {
  return { '--columns': latencies.heads.length } as CSSProperties;
}

function titleOf({ lane }: Known, { concurrency, title }: Compared): string {
  const level = `${kindOf(concurrency) === 'rate' ? '' : 'concurrency '}${levelText(concurrency)}`;
  return `${servingName(lane.state)} live at ${level} · Baseline: ${title}`;
}

function NothingToCompare({ comparison }: { comparison: Compared }) {
  if (comparison.name !== THIS_TARGET) {
    return <div>Nothing to compare with: every column of this baseline is hidden, or it has none.</div>;
  }
  return (
    <div>
      This target has not been measured in another mode yet. Let the workload settle in one mode, then change the mode:
      the earlier measurements then appear here next to the live figures.
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  comparison: { ...COLUMN, gap: theme.spacing(1), containerType: 'inline-size' },
  body: { ...COLUMN, gap: theme.spacing(1) },
  head: { ...LINE, justifyContent: 'space-between', gap: theme.spacing(0, 2) },
  present: { ...LINE, gap: theme.spacing(0, 1) },
  title: { fontSize: theme.typography.h5.fontSize, fontWeight: theme.typography.fontWeightMedium },
  largeTitle: { fontSize: `clamp(16px, 2cqi, ${theme.typography.h2.fontSize})`, lineHeight: 1.4 },
  tables: { ...WRAP, gap: theme.spacing(1, 3) },
  // The largest font size of a table. With the rates below, they would otherwise outgrow the latencies.
  largeTables: { fontSize: LARGE_TEXT },
  latencies: { flex: '3 1 520px', minWidth: 'min(100%, 400px)' },
  rates: { flex: '2 1 320px', minWidth: 'min(100%, 300px)' },
}));
