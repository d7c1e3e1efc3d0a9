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
  type RunChange,
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
import { number } from '../../lib/format';
import { arrivalOf } from '../../lib/known';
import { COLUMN, stylesOf, verdicts, WRAP } from '../../lib/styles';
import { clock, dateTime } from '../../lib/time';
import { useStable } from '../../lib/useStable';
import { LANE } from '../lane';
import { useChoice } from '../useChoice';
import {
  changesOf,
  countText,
  directionOf,
  drawingOf,
  drawingText,
  runFigures,
  seriesOf,
  SIGNS,
  sizeText,
  valuesText,
  type Series,
} from './model';
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

function optionOf(series: Series) {
  const { key, title, runs } = series;
  const last = dateTime(runs[runs.length - 1].run.ended, 'minute');
  return { value: key, label: title, description: `${countText(series)}, last ${last}` };
}

interface ViewProps {
  series: Series;
  figure: RowFigure;
}

/** The least number of runs in which a change is found. */
const LEAST = 6;

/** The changes of a figure in words, and the other figures that changed. */
function Changes({ series, figure, onFigure }: ViewProps & { onFigure(key: string): void }) {
  const styles = useStyles();
  const own = [...changesOf(series, figure).values()];
  const others = runFigures.flatMap((other) => {
    const last = [...changesOf(series, other).values()].at(-1);
    return last && other !== figure ? [{ ...other, last }] : [];
  });
  const endOf = ({ run: id }: RunChange) => series.runs.find(({ run }) => run.id === id)?.run.ended ?? '';
  return (
    <div className={styles.changes} role="group" aria-label="Changes">
      {own.length === 0 && (
        <p>
          {figure.name}:{' '}
          {series.runs.length < LEAST
            ? `${countText(series)}, changes are found in ${number(LEAST)} or more.`
            : `no lasting change found in ${countText(series)}.`}
        </p>
      )}
      {own.map((change) => (
        <p key={change.run}>
          {figure.name}{' '}
          <b className={styles[directionOf(change)]}>
            {sizeText(change)}, {directionOf(change)}
          </b>{' '}
          since run {change.run}, {dateTime(endOf(change), 'minute')}: {valuesText(change)}
        </p>
      ))}
      {others.length > 0 && (
        <p>
          Also changed:{' '}
          {others.map(({ key, name, last }) => (
            <span key={key}>
              <Button fill="text" size="sm" onClick={() => onFigure(key)}>
                {name}
              </Button>{' '}
              <span className={styles[directionOf(last)]}>{directionOf(last)}</span>
            </span>
          ))}
        </p>
      )}
    </div>
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
  const texts = drawing.signs!.map(({ text }) => text).join('');
  for (const [sign, words] of Object.entries(SIGNS)) {
    if (texts.includes(sign)) {
      legend.push({ key: sign, sign, words });
    }
  }
  return (
    <ChartGrid least={320} most={1} stretched legend={legend}>
      <ChartFigure
        caption={
          <>
            {figure.heading} {drawing.floor !== 0 && <i>the axis does not begin at 0</i>}
          </>
        }
      >
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
    fontVariantNumeric: 'tabular-nums',
    '& b': { fontWeight: theme.typography.fontWeightMedium },
    '& p > span': { marginRight: theme.spacing(1.5), whiteSpace: 'nowrap' },
    '& button': { height: 'auto', padding: 0, fontSize: 'inherit' },
  },
  ...verdicts(theme),
}));
