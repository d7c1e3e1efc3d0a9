import { cx } from '@emotion/css';

import { LinkButton } from '@grafana/ui';

import {
  figures,
  listBaselines,
  reportAddress,
  useClient,
  usePolled,
  type Baseline,
  type LaneSnapshot,
  type Live,
  type ReportSide,
} from '../../client';
import { DataTable } from '../../components/DataTable';
import { Section } from '../../components/Section';
import { DASH, gibibytes, milliseconds, number, percent } from '../../lib/format';
import { levelWords } from '../../lib/level';
import { hasDrafts, isOffered, isPhase, PHASES, type Phase } from '../../lib/phases';
import { markedRow, stylesOf } from '../../lib/styles';
import { simulationNote } from '../../lib/target';
import { dateTime } from '../../lib/time';
import { whyUnread } from '../../lib/unread';

/** The interval between requests for measurements, in milliseconds: each settled step adds some. */
const EVERY = 30_000;

const changes: Record<Phase['id'], string> = {
  '1': 'No optimization. Each worker prefills whatever it has not cached itself, then generates one token per pass.',
  '2': 'The router sends a turn to the worker that has its prefix cached. Later turns start sooner; ITL is unchanged.',
  '3a': 'A small model drafts tokens, and the large one verifies several in one pass. ITL falls in every turn.',
  '3b': 'The large model drafts its own tokens. More should be accepted, and no second model takes up memory.',
};

/** The model of each phase in the demonstration's proposal. */
const models: Record<Phase['id'], string> = {
  '1': 'Llama 3.1 70B',
  '2': 'Llama 3.1 70B',
  '3a': 'Llama 3.1 70B',
  '3b': 'Llama 3.3 70B',
};

/** The demonstration's phases, each with this target's measurements. */
export function Phases({ live }: { live: Live }) {
  const styles = useStyles();
  const client = useClient();
  const { value: baselines } = usePolled(() => listBaselines(client), EVERY, 'baselines');
  const { lane } = live;
  const rows = PHASES.map((phase) => measuredRow(baselines, phase, lane));
  const known = rows.filter((row) => row !== undefined);
  const [, , draft, eagle3] = PHASES;
  const both = baselines?.find(
    ({ kind, rows: all }) => kind === 'measured' && [draft, eagle3].every((p) => all.some((r) => isPhase(p, r)))
  );
  const extra = speculative.filter(({ value }) => hasDrafts(known) && known.some((row) => value(row) !== undefined));
  return (
    <Section
      title="The phases: routing, then speculation"
      info={
        'Four configurations of one cluster, each changing one thing. Figures were measured on ' +
        'this target at the current concurrency; a phase without a settled step has none.'
      }
    >
      <DataTable
        label="Phases as a table"
        className={styles.table}
        rows={PHASES.map((phase, i) => ({
          phase,
          row: rows[i],
          isNow: lane !== undefined && isPhase(phase, lane.state),
        }))}
        keyOf={({ phase }) => phase.id}
        rowClass={({ isNow }) => cx(isNow && styles.now)}
        columns={[
          {
            name: 'Phase',
            cell: ({ phase, isNow }) => (
              <>
                {phase.id} · {phase.title}
                {isNow && <small> current</small>}
              </>
            ),
          },
          { name: 'What changes', className: styles.text, cell: ({ phase }) => changes[phase.id] },
          { name: 'Model, as proposed', cell: ({ phase }) => models[phase.id] },
          { name: 'TTFT p95', cell: ({ row }) => milliseconds(row?.ttft.p95) },
          { name: 'ITL p50', cell: ({ row }) => milliseconds(row?.itl.p50) },
          { name: 'Output tokens/s', cell: ({ row }) => number(row?.output_tokens_per_second) },
          ...extra.map(({ name, value, write }) => ({
            name,
            cell: ({ row }: { row?: MeasuredRow }) => write(row && value(row)),
          })),
          { name: 'Measured', cell: ({ phase, row }) => sourceNote(phase, lane, row) },
        ]}
      />
      {both && (
        <LinkButton
          icon="file-alt"
          variant="secondary"
          href={reportAddress(client, side(both, draft), side(both, eagle3), 'html')}
          target="_blank"
          rel="noreferrer"
        >
          Compare 3b with 3a
        </LinkButton>
      )}
      <p>{now(lane)}</p>
      <p className={styles.note}>
        EAGLE-3 needs a head that was trained for its model, and there is none for Llama 3.1 70B: in phase 3b the
        proposal changes the model to Llama 3.3 70B, of the same architecture. {served(lane)} The recorded runs match
        none of the phases: whether they used speculation is not recorded. {simulated(lane)}
      </p>
    </Section>
  );
}

type MeasuredRow = Baseline['rows'][number];

/** Returns the column of a phase in a baseline, as a side of a report. */
function side({ name: baseline }: Baseline, { mode, speculation }: Phase): ReportSide {
  return { baseline, mode, speculation };
}

/** The figures that speculation adds to a row. The table has a column for each that a row has. */
interface Figure {
  name: string;
  value(row: MeasuredRow): number | undefined;
  write(value: number | undefined): string;
}

const speculative: Figure[] = [
  { name: figures.acceptance_rate.name, value: (row) => row.acceptance_rate, write: (value) => percent(value) },
  { name: figures.tokens_per_step.name, value: (row) => row.tokens_per_step, write: (value) => number(value, 2) },
  { name: figures.gpu_memory_bytes.name, value: (row) => row.gpu_memory_bytes, write: gibibytes },
];

function sourceNote(phase: Phase, lane: LaneSnapshot | undefined, row: MeasuredRow | undefined): string {
  if (!lane) {
    return DASH;
  }
  if (row?.measured) {
    return `here, ${dateTime(row.measured)}`;
  }
  const lost = lane.baseline.not_kept;
  if (lost && isPhase(phase, lost) && lost.concurrency === lane.state.concurrency.target) {
    return `not kept: ${lost.reason}`;
  }
  return isOffered(phase, lane.state)
    ? `not yet at ${levelWords(lane.state.concurrency.target)}`
    : `not offered by the mode driver “${lane.state.driver}”`;
}

/** Returns this target's measurements in a phase at exactly the concurrency in force. */
function measuredRow(
  baselines: Baseline[] | undefined,
  phase: Phase,
  lane: LaneSnapshot | undefined
): MeasuredRow | undefined {
  return baselines
    ?.filter((baseline) => baseline.kind === 'measured')
    .flatMap((baseline) => baseline.rows)
    .find((row) => isPhase(phase, row) && row.concurrency === lane?.state.concurrency.target);
}

/** The present figures of speculation. */
function now(lane: LaneSnapshot | undefined): string {
  const { acceptance, tokens_per_step: perStep } = lane?.cluster.speculation ?? {};
  if (acceptance !== undefined) {
    return (
      `Now ${percent(acceptance)} of the drafted tokens are accepted, and a pass of the ` +
      `large model yields ${number(perStep, 2)} tokens.`
    );
  }
  if (perStep !== undefined) {
    return `Now a pass of the large model yields ${number(perStep, 2)} tokens; no tokens are drafted.`;
  }
  const why = lane && whyUnread(lane.cluster, 'workers');
  return why
    ? `Acceptance rate and tokens per step are unknown: ${why}.`
    : 'Acceptance rate and tokens per step are not reported now.';
}

/** The measurements of this target in any phase. */
function served(lane: LaneSnapshot | undefined): string {
  const model = lane?.target.deployment.model ?? lane?.target.model;
  return model ? `This target serves ${model}.` : '';
}

function simulated(lane: LaneSnapshot | undefined): string {
  const note = lane && simulationNote(lane.state);
  return note ? `Not calibrated: ${note}` : '';
}

const useStyles = stylesOf((theme) => ({
  table: {
    minWidth: 960,
    marginBottom: theme.spacing(1),
    '& th, & td': { whiteSpace: 'nowrap' },
    '& th': { fontWeight: theme.typography.fontWeightMedium },
    '& small': { display: 'inline' },
  },
  text: { minWidth: '36ch', whiteSpace: 'normal !important' as 'normal', textWrap: 'pretty' },
  now: [markedRow(theme), { '&& > :first-child': { boxShadow: `inset 3px 0 0 ${theme.colors.primary.main}` } }],
  note: { margin: 0, color: theme.colors.text.secondary, textWrap: 'pretty' },
}));
