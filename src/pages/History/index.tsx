import { useMemo } from 'react';

import { Alert, Button } from '@grafana/ui';

import { listRuns, useClient, usePolled, type Polled, type RunHistory } from '../../client';
import { Chart, ChartFigure, ChartGrid, type LegendItem } from '../../components/Chart';
import { Choice } from '../../components/Choice';
import { NotLoaded } from '../../components/Loading';
import { Section } from '../../components/Section';
import { COLUMN, LINE, stylesOf, verdicts } from '../../lib/styles';
import { clock, dateTime } from '../../lib/time';
import { useChoice } from '../useChoice';
import {
  changesOf,
  changeText,
  countText,
  directionOf,
  drawingOf,
  drawingText,
  runFigures,
  seriesOf,
  SIGNS,
  valuesText,
  type Series,
  type ViewProps,
} from './model';
import { KEY, Runs } from './Runs';

/** The intervals between requests for the history, in milliseconds: after an answer, and after a failure. */
export const RUNS_EVERY = 30_000;
const RETRY = 3000;

/** The History page: each figure over the runs of one name, where it changed, and which runs are accepted. */
export default function History() {
  const client = useClient();
  const next = ({ problem }: Polled<RunHistory>) => (problem?.status === 404 ? false : problem ? RETRY : RUNS_EVERY);
  const known = usePolled(() => listRuns(client), next, KEY);
  return (
    <Section
      title="Runs over time"
      info={
        'Runs of one name (--name) at the same load, arm and traffic, each with its 95 % interval. A lasting change ' +
        'of a figure is found once there are three runs on either side of it. Later runs are compared with the last ' +
        'accepted one (--against accepted).'
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
          No runs yet. A run with <code>--duration</code> or <code>--requests</code> in this data directory, a trial, a
          sweep or a capacity search appears here when it ends.
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
        <Choice label="Series" options={all.map(optionOf)} value={series.key} onChange={choose} />
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

/** The changes of a figure in words, and the other figures that changed. */
function Changes({ series, figure, onFigure }: ViewProps & { onFigure(key: string): void }) {
  const styles = useStyles();
  const changes = changesOf(series, figure);
  const own = series.runs.flatMap(({ run }) => {
    const change = changes.get(run.id);
    return change ? [{ change, at: dateTime(run.ended, 'minute') }] : [];
  });
  const others = runFigures.flatMap((other) => {
    const last = [...changesOf(series, other).values()].at(-1);
    return last && other !== figure ? [{ ...other, last }] : [];
  });
  return (
    <div className={styles.changes} role="group" aria-label="Changes">
      {own.length === 0 && (
        <p>
          {figure.name}: no lasting change found in {countText(series)}.
        </p>
      )}
      {own.map(({ at, change }) => (
        <p key={change.run}>
          {figure.name} <b className={styles[directionOf(change)]}>{changeText(change)}</b> since run {change.run}, {at}
          : {valuesText(change)}
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
  for (const [words, sign] of Object.entries(SIGNS)) {
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

const useStyles = stylesOf((theme) => ({
  content: { ...COLUMN, gap: theme.spacing(2), minWidth: 0, '& p': { margin: 0 } },
  choices: { ...LINE, gap: theme.spacing(1, 3) },
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
