import { memo, useId, useMemo, useState } from 'react';

import { Alert, Combobox, Switch } from '@grafana/ui';

import { useBaselines, useLive, type Baseline, type Settings } from '../../client';
import { number } from '../../lib/format';
import { lastKnown } from '../../lib/known';
import { stylesOf } from '../../lib/styles';
import { Loading } from '../Loading';
import { BenchmarkCurves } from './BenchmarkCurves';
import { BenchmarkTable } from './BenchmarkTable';
import { defaultBaseline, metricsOfKind, toBenchmark, type Kind } from './model';
import { BenchmarkNotes } from './BenchmarkNotes';
import { SustainedLine } from './SustainedLine';

type Choose = [chosen: string | undefined, choose: (value: string | undefined) => void];

interface BenchmarkProps {
  lane: string;
  /** The chosen baseline and its setter. Without one, the choice is kept by the component itself. */
  choice?: Choose;
  /** The choice of levels, "all" or those of the slider, and its setter. */
  levels?: Choose;
}

/** Recorded results of round-robin and KV-aware routing, level by level. */
export function Benchmark({ lane, choice, levels }: BenchmarkProps) {
  const live = useLive(lane);
  const ownChoice = useState<string>();
  const ownLevels = useState<string>();
  const settings = lastKnown(live, lane)?.settings;
  const { value: baselines, problem } = useBaselines(settings?.slo);
  const state = live.lane?.state;
  const running = state?.running ? (state.step.held?.at ?? state.concurrency.target) : undefined;
  if (!baselines || !settings) {
    return problem ? (
      <Alert severity="warning" title="The recorded results could not be loaded" bottomSpacing={0}>
        {problem.message}
      </Alert>
    ) : live.state.status === 'lost' ? (
      <p>Recorded results appear once the load generator responds.</p>
    ) : (
      <Loading text="Loading the recorded results…" />
    );
  }
  const [name, choose] = choice ?? ownChoice;
  const [which, setWhich] = levels ?? ownLevels;
  return (
    <Chosen
      lane={lane}
      baselines={baselines}
      settings={settings}
      concurrency={running}
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
  concurrency?: number;
  name: string | undefined;
  onChoose(name: string): void;
  all: boolean;
  onAll(levels: string | undefined): void;
}

/** Recorded results rarely change, so a snapshot does not render them again. */
const Chosen = memo(function Chosen(props: ChosenProps) {
  const { lane, baselines, settings, concurrency, name, onChoose, all, onAll } = props;
  const styles = useStyles();
  const baseline = baselines.find((b) => b.name === name) ?? defaultBaseline(baselines, settings);
  const model = useMemo(
    () => baseline && toBenchmark({ baseline, settings, concurrency, all }),
    [baseline, settings, concurrency, all]
  );
  if (!baseline || !model) {
    return <p>No recorded results yet. An administrator can import some.</p>;
  }
  return (
    <div className={styles.benchmark}>
      <div className={styles.choices}>
        <Choice baselines={baselines} baseline={baseline} onChoose={onChoose} />
        <AllLevels all={all} onChange={(on) => onAll(on ? ALL : undefined)} />
      </div>
      {model.rows.length > 0 ? (
        <>
          {tables.map(({ kind, name }) => (
            <BenchmarkTable
              key={kind}
              caption={`${baseline.title}, ${name} level by level`}
              model={metricsOfKind(model, kind)}
            />
          ))}
          {model.missing.length > 0 && (
            <div className={styles.note}>
              <i>Not recorded</i> in this baseline: {model.missing.join(', ')}.
            </div>
          )}
          <BenchmarkCurves model={model} settings={settings} lane={lane} />
        </>
      ) : (
        <p>None of its {model.all} levels is on the slider. Enable “All levels” to see them.</p>
      )}
      <SustainedLine baseline={baseline} />
      <BenchmarkNotes baseline={baseline} settings={settings} />
      {concurrency !== undefined && !model.rows.some((row) => row.current) && (
        <div className={styles.note}>The workload runs at {number(concurrency)}, which is not one of these levels.</div>
      )}
    </div>
  );
});

const tables: Array<{ kind: Kind; name: string }> = [
  { kind: 'latency', name: 'latencies' },
  { kind: 'rate', name: 'rates' },
];

interface ChoiceProps {
  baselines: Baseline[];
  baseline: Baseline;
  onChoose(name: string): void;
}

/** The title of the baseline, with a choice where there are others. */
function Choice({ baselines, baseline, onChoose }: ChoiceProps) {
  const styles = useStyles();
  const id = useId();
  const options = useMemo(() => baselines.map((b) => ({ value: b.name, label: b.title })), [baselines]);
  if (options.length === 1) {
    return <span className={styles.name}>{baseline.title}</span>;
  }
  return (
    <div className={styles.choice}>
      <label htmlFor={id}>Baseline</label>
      <Combobox
        id={id}
        width="auto"
        minWidth={30}
        options={options}
        value={baseline.name}
        onChange={({ value }) => onChoose(value)}
      />
    </div>
  );
}

function AllLevels({ all, onChange }: { all: boolean; onChange(all: boolean): void }) {
  const styles = useStyles();
  const id = useId();
  return (
    <div className={styles.choice}>
      <label htmlFor={id}>All levels</label>
      <Switch id={id} value={all} onChange={(event) => onChange(event.currentTarget.checked)} />
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  benchmark: { display: 'flex', flexDirection: 'column', gap: theme.spacing(1) },
  choices: { display: 'flex', flexWrap: 'wrap', alignItems: 'center', gap: theme.spacing(1, 3) },
  choice: {
    display: 'flex',
    flexWrap: 'wrap',
    alignItems: 'center',
    gap: theme.spacing(0, 1),
    minWidth: 0,
    '& > *': { maxWidth: '100%' },
  },
  name: { fontWeight: theme.typography.fontWeightMedium },
  note: { ...theme.typography.bodySmall, color: theme.colors.text.secondary },
}));
