import { memo, useId, useMemo } from 'react';

import { Switch } from '@grafana/ui';

import { useBaselines, useLive, type Baseline, type Settings } from '../../client';
import { lastKnown } from '../../lib/known';
import { levelText, type Level } from '../../lib/level';
import { modeName } from '../../lib/names';
import { provenanceOf } from '../../lib/provenance';
import { COLUMN, LINE, stylesOf } from '../../lib/styles';
import { Chart, ChartFigure, ChartGrid, type LegendItem } from '../Chart';
import { Choice } from '../Choice';
import { Notes, SLONotes, sloText } from '../Comparison';
import { NotLoaded } from '../Loading';
import { BenchmarkTable } from './BenchmarkTable';
import { SustainedLine } from './SustainedLine';
import {
  defaultBaseline,
  LIVE,
  liveValues,
  toBenchmark,
  toCurves,
  type BenchmarkModel,
  type LiveValues,
} from './model';

type Choose = [chosen: string | undefined, choose: (value: string | undefined) => void];

interface BenchmarkProps {
  lane: string;
  /** The chosen baseline and its setter. */
  choice: Choose;
  /** The choice of levels, "all" or those of the slider, and its setter. */
  levels: Choose;
}

/** Recorded results of round-robin and KV-aware routing, level by level. */
export function Benchmark({ lane, choice: [name, choose], levels: [which, setWhich] }: BenchmarkProps) {
  const live = useLive(lane);
  const settings = lastKnown(live, lane)?.settings;
  const { value: baselines, problem } = useBaselines(settings?.slo);
  const state = live.lane?.state;
  if (!baselines || !settings) {
    return live.state.status === 'lost' && !problem ? (
      <p>Recorded results appear once the load generator responds.</p>
    ) : (
      <NotLoaded what="recorded results" problem={problem} />
    );
  }
  return (
    <Chosen
      lane={lane}
      baselines={baselines}
      settings={settings}
      current={state?.running ? (state.step.held?.at ?? state.concurrency.target) : undefined}
      name={name}
      onChoose={choose}
      all={which === ALL}
      onAll={setWhich}
    />
  );
}

/** The value of the choice of all levels in an address. */
const ALL = 'all';

interface ChosenProps {
  lane: string;
  baselines: Baseline[];
  settings: Settings;
  /** The concurrency of the running workload; undefined while none runs. */
  current?: Level;
  name: string | undefined;
  onChoose(name: string): void;
  all: boolean;
  onAll(levels: string | undefined): void;
}

/** Recorded results rarely change, so a snapshot does not render them again. */
const Chosen = memo(function Chosen(props: ChosenProps) {
  const { lane, baselines, settings, current, name, onChoose, all, onAll } = props;
  const styles = useStyles();
  const baseline = baselines.find((b) => b.name === name) ?? defaultBaseline(baselines, settings);
  const model = useMemo(() => baseline && toBenchmark(baseline, settings, all), [baseline, settings, all]);
  if (!baseline || !model) {
    return <p>No recorded results yet. An administrator can import some.</p>;
  }
  return (
    <div className={styles.benchmark}>
      <div className={styles.choices}>
        <BaselineChoice baselines={baselines} baseline={baseline} onChoose={onChoose} />
        <AllLevels all={all} onChange={(on) => onAll(on ? ALL : undefined)} />
      </div>
      {model.pairs.length > 0 ? (
        <>
          {tables.map(({ kind, name }) => (
            <BenchmarkTable
              key={kind}
              caption={`${baseline.title}, ${name} level by level`}
              model={model}
              kind={kind}
              current={current}
            />
          ))}
          {model.missing.length > 0 && (
            <div className={styles.note}>
              <i>Not recorded</i> in this baseline: {model.missing.join(', ')}.
            </div>
          )}
          <BenchmarkCurves model={model} lane={lane} />
        </>
      ) : (
        <p>None of its {model.all} levels is on the slider. Enable “All levels” to see them.</p>
      )}
      <SustainedLine baseline={baseline} />
      <BenchmarkNotes baseline={baseline} settings={settings} />
      {current !== undefined && !model.pairs.some(({ concurrency }) => concurrency === current) && (
        <div className={styles.note}>The workload runs at {levelText(current)}, which is not one of these levels.</div>
      )}
    </div>
  );
});

const tables = [
  { kind: 'latency', name: 'latencies' },
  { kind: 'rate', name: 'rates' },
] as const;

interface BaselineProps {
  baselines: Baseline[];
  baseline: Baseline;
  onChoose(name: string): void;
}

/** The title of the baseline, with a choice where there are others. */
function BaselineChoice({ baselines, baseline, onChoose }: BaselineProps) {
  const styles = useStyles();
  const options = useMemo(() => baselines.map((b) => ({ value: b.name, label: b.title })), [baselines]);
  return options.length === 1 ? (
    <span className={styles.name}>{baseline.title}</span>
  ) : (
    <Choice label="Baseline" options={options} value={baseline.name} onChange={onChoose} />
  );
}

function AllLevels({ all, onChange }: { all: boolean; onChange(all: boolean): void }) {
  const styles = useStyles();
  const id = useId();
  return (
    <div className={styles.switch}>
      <label htmlFor={id}>All levels</label>
      <Switch id={id} value={all} onChange={(event) => onChange(event.currentTarget.checked)} />
    </div>
  );
}

/** The legend of the table, with the source of its figures. */
function BenchmarkNotes({ baseline, settings: { slo } }: { baseline: Baseline; settings: Settings }) {
  return (
    <Notes>
      <li>{sloText(slo)}</li>
      <SLONotes />
      <li>Improvement: KV-aware vs. round-robin; + is better</li>
      {provenanceOf(baseline).map(({ name, value }) => (
        <li key={name}>
          {name}: {value}
        </li>
      ))}
    </Notes>
  );
}

/** Each metric against the levels of each kind, with the figures of the tables, and the live ones as points. */
const BenchmarkCurves = memo(function BenchmarkCurves({ model, lane: name }: { model: BenchmarkModel; lane: string }) {
  const { lane } = useLive(name);
  const live = JSON.stringify(liveValues(lane) ?? null); // rendered again only where a figure has changed
  const curves = useMemo(() => toCurves(model, (JSON.parse(live) as LiveValues | null) ?? undefined), [model, live]);
  const legend: LegendItem[] = (['round_robin', 'kv'] as const).map((mode) => ({
    key: mode,
    tone: mode,
    words: modeName(mode),
  }));
  if (curves.some(({ lines }) => lines.some(({ key }) => key === LIVE))) {
    legend.push({ key: LIVE, tone: lane?.state.mode, look: 'rings', words: 'live now, this step' });
  }
  return (
    <ChartGrid least={300} legend={legend}>
      {curves.map(({ metric: { key, heading }, by, ...drawing }) => (
        <ChartFigure key={`${key} ${by}`} caption={heading}>
          <Chart
            label={`${heading} by ${by} under round-robin and KV-aware routing; figures in the tables`}
            {...drawing}
          />
        </ChartFigure>
      ))}
    </ChartGrid>
  );
});

const useStyles = stylesOf((theme) => ({
  benchmark: { ...COLUMN, gap: theme.spacing(1) },
  choices: { ...LINE, gap: theme.spacing(1, 3) },
  switch: { display: 'flex', alignItems: 'center', gap: theme.spacing(1) },
  name: { fontWeight: theme.typography.fontWeightMedium },
  note: { ...theme.typography.bodySmall, color: theme.colors.text.secondary },
}));
