import { useMemo } from 'react';

import { Alert, RadioButtonGroup } from '@grafana/ui';

import { listSimulations, useBaselines, useClient, useLive, useMe, usePolled, type SimulationList } from '../../client';
import { ExportButton, type ExportFile } from '../../components/Export';
import { Fold } from '../../components/Fold';
import { NotLoaded } from '../../components/Loading';
import { Section } from '../../components/Section';
import { lastKnown } from '../../lib/known';
import { COLUMN, LINE, stylesOf } from '../../lib/styles';
import { useNarrow } from '../../lib/useNarrow';
import { LANE } from '../lane';
import { useChoice } from '../useChoice';
import { Curves } from './Curves';
import { curvesCsv } from './exported';
import { Fields } from './Fields';
import { FiguresTable } from './FiguresTable';
import { fieldOf } from './fields';
import { HoldsUpTo } from './HoldsUpTo';
import { Presets } from './Presets';
import { Progress } from './Progress';
import { baselinesToCompare, modesOf, overloadWords, seriesOf, type Beside } from './series';
import { useQuestion, type Asked } from './useQuestion';
import { useSimulation, type Simulating } from './useSimulation';
import { Why } from './Why';

/** How often it is asked what can be simulated, in milliseconds: files of profiles come and go. */
const LIST_EVERY = 30_000;

/** The interval while there is no answer. */
const LIST_RETRY = 3000;

/** The What-if page: a simulated cluster under another load, with other GPUs or another router. */
export default function WhatIf() {
  const client = useClient();
  const { value: list, problem } = usePolled(
    () => listSimulations(client),
    (known) => (known.problem ? LIST_RETRY : LIST_EVERY),
    'simulations'
  );
  const asked = useQuestion(list);
  if (!list) {
    return <NotLoaded what="simulation options" problem={problem} />;
  }
  if (!list.available) {
    return (
      <Alert severity="info" title="Simulations are disabled here" bottomSpacing={0}>
        {list.message}
      </Alert>
    );
  }
  return asked.question ? (
    <Simulated list={list} asked={asked} question={asked.question} />
  ) : (
    <Alert severity="warning" title="No profiles to simulate" bottomSpacing={0}>
      {list.profiles.map(({ source, error }) => `${source}: ${error}`).join('; ')}
    </Alert>
  );
}

interface SimulatedProps {
  list: SimulationList;
  asked: Asked;
  question: NonNullable<Asked['question']>;
}

/** The width below which the fields are above the curves, in pixels. */
const NARROW = 900;

function Simulated({ list, asked, question }: SimulatedProps) {
  const styles = useStyles();
  const me = useMe();
  const [element, narrow] = useNarrow(NARROW);
  const simulating = useSimulation(question.request, me?.canOperate);
  const problem = simulating.answer.problem;
  const at = fieldOf(problem?.field);
  const refused = useMemo(() => (at && problem ? { [at]: problem.message } : {}), [at, problem]);
  const fields = <Fields question={question} refused={refused} onChange={asked.set} />;
  return (
    <div className={styles.page} ref={element}>
      <Section
        title="What if"
        info={
          'Runs your question on the simulated cluster: the demo’s model of GPUs, caches and ' +
          'router, in virtual time. The load generator computes it alongside the workload at low ' +
          'priority; nothing is sent to your cluster.'
        }
      >
        <Presets
          question={question}
          profiles={list.profiles}
          onPreset={asked.choosePreset}
          onProfile={asked.chooseProfile}
          onReset={asked.reset}
        />
      </Section>
      <div className={narrow ? styles.narrow : styles.wide}>
        <Section
          title="Settings"
          info="Settings start from the preset. Changes are marked and stored in the URL of this page."
        >
          {narrow ? (
            <Fold label="Change the settings" openLabel="Hide the settings" isSolid>
              {fields}
            </Fold>
          ) : (
            fields
          )}
        </Section>
        <Answered question={question} simulating={simulating} />
      </div>
    </div>
  );
}

/** The answer as it grows, and its explanation. */
function Answered({ question, simulating }: { question: SimulatedProps['question']; simulating: Simulating }) {
  const styles = useStyles();
  const live = useLive(LANE);
  const known = lastKnown(live, LANE);
  const slo = known?.settings.slo;
  const { value: baselines } = useBaselines(slo);
  const [view, setView] = useChoice('view');
  const { answer } = simulating;
  const { result } = answer;
  const isEarlier = answer.isEarlier || question.request === undefined;
  const fitted = question.profile.baseline;
  const beside = useMemo(() => baselinesToCompare(baselines, fitted), [baselines, fitted]);
  const series = useMemo(() => result && seriesOf(result, beside, slo), [result, beside, slo]);
  const levels = useMemo(() => result?.request.levels ?? [], [result?.request.levels]);
  const modes = useMemo(() => (result ? modesOf(result) : []), [result]);
  const isTable = view === TABLE;
  const has = result !== undefined && result.points.length > 0;
  return (
    <div className={styles.answer}>
      <Section
        title="Simulated"
        info={
          'Each point is the mean of several runs of six virtual minutes, evaluated like the ' +
          'recorded results. Nothing here was measured; recorded and measured values are labeled ' +
          'as such.'
        }
        actions={
          <div className={styles.actions}>
            <RadioButtonGroup
              aria-label="How the figures are shown"
              size="sm"
              options={views}
              value={isTable ? TABLE : ''}
              onChange={(next) => setView(next || undefined)}
            />
            <ExportButton
              label="Export the simulation"
              disabled={!has || isEarlier}
              files={result && series ? files(result, series, beside) : []}
            />
          </div>
        }
      >
        {question.request ? (
          <Progress {...simulating} />
        ) : (
          <p role="status">Not computed: correct the settings marked in red.</p>
        )}
        {has && isEarlier && <p>The figures below are from the previous question.</p>}
        {series && has ? (
          <>
            {!isEarlier && answer.phase === 'done' && (
              <HoldsUpTo series={series} levels={levels} modes={modes} slo={slo} />
            )}
            <Overloaded words={overloadWords(series[0], modes)} />
            {isTable ? (
              <FiguresTable series={series} levels={levels} modes={modes} />
            ) : (
              <Curves
                series={series}
                levels={levels}
                modes={modes}
                beside={beside}
                seeds={result.request.seeds ?? 1}
                slo={slo}
                measuredOnSimulated={known?.lane.target.kind === 'simulated'}
                isEarlier={isEarlier}
              />
            )}
            {result.notes.length > 0 && (
              <ul className={styles.notes} aria-label="Notes">
                {result.notes.map((note) => (
                  <li key={note}>{note}</li>
                ))}
              </ul>
            )}
          </>
        ) : (
          <div className={styles.empty}>Curves appear with the first runs.</div>
        )}
      </Section>
      {has && !isEarlier && (
        <Section
          title="Why the modes cross"
          info={
            'What each mode did to queues and caches in the simulation, and what follows from that. ' +
            'The sentences are generated from these figures.'
          }
        >
          <Why result={result} />
        </Section>
      )}
    </div>
  );
}

/** Names the rates that a mode does not keep up with. */
function Overloaded({ words }: { words: string[] }) {
  return words.length > 0 ? (
    <Alert severity="warning" title={words.join(' ')} bottomSpacing={1}>
      The queue grows without end there. Latencies would say how long the simulation took, and are left out.
    </Alert>
  ) : null;
}

const TABLE = 'table';

const views = [
  { value: '', label: 'Curves' },
  { value: TABLE, label: 'Table' },
];

function files(
  result: NonNullable<Simulating['answer']['result']>,
  series: Parameters<typeof curvesCsv>[1],
  beside: Beside
): ExportFile[] {
  return [
    { label: 'Curves as CSV', of: 'what-if', format: 'csv', text: () => curvesCsv(result, series, beside) },
    { label: 'Simulation as JSON', of: 'what-if', format: 'json', text: () => JSON.stringify(result, undefined, 2) },
  ];
}

const useStyles = stylesOf((theme) => ({
  page: { ...COLUMN, gap: theme.spacing(2), fontSize: 'clamp(14px, 0.9vw, 18px)' },
  wide: {
    display: 'grid',
    gridTemplateColumns: 'minmax(320px, 26em) minmax(0, 1fr)',
    alignItems: 'start',
    gap: theme.spacing(2),
  },
  narrow: { ...COLUMN, gap: theme.spacing(2) },
  answer: { ...COLUMN, gap: theme.spacing(2), minWidth: 0 },
  actions: { ...LINE, gap: theme.spacing(1) },
  // The height of the curves is reserved, so that little moves when they appear.
  empty: { display: 'grid', placeItems: 'center', minHeight: 480, color: theme.colors.text.secondary },
  notes: {
    ...theme.typography.bodySmall,
    margin: theme.spacing(1, 0, 0),
    paddingLeft: theme.spacing(2.5),
    color: theme.colors.text.secondary,
  },
}));
