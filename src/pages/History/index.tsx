import { useMemo } from 'react';
import { useQueryClient } from '@tanstack/react-query';

import { Alert, Button } from '@grafana/ui';

import {
  acceptRun,
  listRuns,
  useClient,
  useLive,
  useMe,
  usePolled,
  type Polled,
  type RunHistory,
  type RunRecord,
} from '../../client';
import { Chart, ChartFigure, ChartGrid, type LegendItem } from '../../components/Chart';
import { Choice } from '../../components/Choice';
import { ActionFailure } from '../../components/Controls/ActionFailure';
import { useAction } from '../../components/Controls/useAction';
import { NotLoaded } from '../../components/Loading';
import { Section } from '../../components/Section';
import type { RowFigure } from '../../lib/figures';
import { number, valueWithUnit } from '../../lib/format';
import { arrivalOf } from '../../lib/known';
import { COLUMN, stylesOf, verdicts, WRAP } from '../../lib/styles';
import { clock, dateTime } from '../../lib/time';
import { useStable } from '../../lib/useStable';
import { LANE } from '../lane';
import { useChoice } from '../useChoice';
import { ACCEPTED, drawingOf, drawingText, FAILED, runFigures, seriesOf, sizeText, type Series } from './model';
import { RunTable } from './RunTable';

/** The intervals between requests for the history, in milliseconds: after an answer, and after a failure. */
export const RUNS_EVERY = 30_000;
const RETRY = 3000;

const KEY = 'runs';

/** The History page: each figure over the runs of one name, where it changed, and which runs are accepted. */
export default function History() {
  const client = useClient();
  const next = ({ problem }: Polled<RunHistory>) => (problem?.status === 404 ? false : problem ? RETRY : RUNS_EVERY);
  const known = usePolled(() => listRuns(client), next, KEY);
  return (
    <Section
      title="Runs over time"
      info={
        'Runs of one name (--name) at the same load, arm and traffic, each with its 95 % interval. A lasting change of ' +
        'a figure is found from the third run after it on, and there are six runs or more. Later runs are compared ' +
        'with the accepted ones (loadgen history accept, --fail-if).'
      }
    >
      <Content known={known} />
    </Section>
  );
}

function Content({ known: { value, problem, at } }: { known: Polled<RunHistory> }) {
  const styles = useStyles();
  const all = useMemo(() => value && seriesOf(value), [value]);
  if (problem?.status === 404) {
    return <p role="status">A recording has no history of runs.</p>;
  }
  if (!all) {
    return <NotLoaded what="history" problem={problem} />;
  }
  return (
    <div className={styles.content}>
      {problem && (
        <Alert severity="warning" title="This history may be out of date" bottomSpacing={0}>
          {problem.message} Last refreshed at {clock(at ?? 0)}.
        </Alert>
      )}
      {all.length > 0 ? (
        <Known all={all} />
      ) : (
        <p role="status">
          No runs yet. A run with <code>--duration</code> or <code>--requests</code>, a trial, a sweep or a capacity
          search appears here when it ends.
        </p>
      )}
    </div>
  );
}

function Known({ all }: { all: Series[] }) {
  const styles = useStyles();
  const [chosen, choose] = useChoice('series');
  const [key, setFigure] = useChoice('figure');
  const series = all.find((one) => one.key === chosen) ?? all[0];
  const figure = runFigures.find((one) => one.key === key) ?? runFigures[0];
  return (
    <>
      <div className={styles.choices}>
        {all.length > 1 ? (
          <Choice label="Series" options={all.map(optionOf)} value={series.key} onChange={choose} />
        ) : (
          <span>{series.title}</span>
        )}
        <Choice
          label="Figure"
          options={runFigures.map((one) => ({ value: one.key, label: one.name }))}
          value={figure.key}
          onChange={setFigure}
        />
      </div>
      <Changes series={series} figure={figure} onFigure={setFigure} />
      <Curve series={series} figure={figure} />
      <Runs series={series} figure={figure} />
    </>
  );
}

function optionOf({ key, title, runs }: Series) {
  const count = `${number(runs.length)} ${runs.length === 1 ? 'run' : 'runs'}`;
  return {
    value: key,
    label: title,
    description: `${count}, last ${dateTime(runs[runs.length - 1].run.ended, 'minute')}`,
  };
}

interface ViewProps {
  series: Series;
  figure: RowFigure;
}

/** The changes of all figures in words. */
function Changes({ series: { changes, runs }, figure, onFigure }: ViewProps & { onFigure(key: string): void }) {
  const styles = useStyles();
  if (changes.length === 0) {
    return <p role="status">No figure has changed lastingly in {number(runs.length)} runs.</p>;
  }
  return (
    <ul className={styles.changes} aria-label="Changes">
      {changes.map((change) => {
        const { name, format } = runFigures.find(({ key }) => key === change.figure) ?? {
          name: change.figure,
          format: {},
        };
        const first = runs.find(({ run }) => run.id === change.run)?.run;
        return (
          <li key={`${change.figure} ${change.run}`}>
            <Button
              fill="text"
              size="sm"
              aria-pressed={change.figure === figure.key}
              onClick={() => onFigure(change.figure)}
            >
              {name}
            </Button>
            <span className={change.better ? styles.better : styles.worse}>{change.better ? 'better' : 'worse'}</span>
            <span>
              {sizeText(change)} since run {change.run}
              {first && `, ${dateTime(first.ended, 'minute')}`}: from {valueWithUnit(change.before, format)} to{' '}
              {valueWithUnit(change.after, format)}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

/** The figure of each run. */
function Curve({ series, figure }: ViewProps) {
  const drawing = useMemo(() => drawingOf(series, figure), [series, figure]);
  const legend: LegendItem[] = [
    { key: 'run', tone: series.mode, look: 'solid', words: 'a run, with its 95 % interval' },
  ];
  if (drawing.marks!.length > 0) {
    legend.push({ key: 'mean', tone: 'unknown', look: 'dashed', words: 'mean between changes' });
  }
  const signs = drawing.signs!.map(({ text }) => text).join('');
  for (const [sign, words] of [
    [ACCEPTED, 'accepted'],
    [FAILED, 'failed'],
  ]) {
    if (signs.includes(sign)) {
      legend.push({ key: words, words: `${sign} ${words}` });
    }
  }
  return (
    <ChartGrid least={320} most={1} stretched legend={legend}>
      <ChartFigure caption={figure.heading}>
        <Chart label={`${figure.name} by run`} words={drawingText(series, figure)} {...drawing} />
      </ChartFigure>
    </ChartGrid>
  );
}

/** The table of runs, and the request to accept one. */
function Runs(props: ViewProps) {
  const client = useClient();
  const queries = useQueryClient();
  const live = useLive(LANE);
  const canOperate = useMe()?.canOperate ?? false;
  const action = useAction(arrivalOf(live));
  const accept = useStable(({ id }: RunRecord, accepted: boolean) => {
    void action.run('accept', async () => {
      await acceptRun(client, id, accepted);
      await queries.invalidateQueries({ queryKey: [KEY] });
    });
  });
  return (
    <>
      <ActionFailure action={action} titles={{ accept: 'The run was not changed' }} />
      <RunTable
        {...props}
        onAccept={canOperate ? accept : undefined}
        disabled={live.lane === undefined || action.busy !== undefined}
      />
    </>
  );
}

const useStyles = stylesOf((theme) => ({
  content: { ...COLUMN, gap: theme.spacing(2), minWidth: 0, '& p': { margin: 0 } },
  choices: { ...WRAP, alignItems: 'center', gap: theme.spacing(1, 3) },
  changes: {
    ...COLUMN,
    gap: theme.spacing(0.5),
    margin: 0,
    padding: 0,
    listStyle: 'none',
    fontVariantNumeric: 'tabular-nums',
    '& li': { ...WRAP, alignItems: 'baseline', gap: theme.spacing(0, 1) },
    '& button': { height: 'auto', padding: 0, fontSize: 'inherit' },
  },
  ...verdicts(theme),
}));
