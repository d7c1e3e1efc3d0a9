import { cx } from '@emotion/css';

import { LinkButton } from '@grafana/ui';

import {
  reportAddress,
  useBaselines,
  useClient,
  type Baseline,
  type BaselineRow,
  type LaneSnapshot,
  type Live,
  type ReportSide,
} from '../../client';
import { DataTable } from '../../components/DataTable';
import { Section } from '../../components/Section';
import { figureFormats, valueFigure } from '../../lib/figures';
import { DASH, milliseconds, number, valueWithUnit } from '../../lib/format';
import { levelWords } from '../../lib/level';
import { hasDrafts, isOffered, isPhase, PHASES, type Phase } from '../../lib/phases';
import { markedRow, stylesOf } from '../../lib/styles';
import { simulationNote } from '../../lib/target';
import { dateTime } from '../../lib/time';
import { changes, models, optimizations } from './phases.json';

/** The demonstration's phases, each with this target's measurements. */
export function Phases({ live }: { live: Live }) {
  const styles = useStyles();
  const client = useClient();
  const { value: baselines } = useBaselines();
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
        label="Optimizations as a table"
        className={styles.optimizations}
        rows={optimizations}
        keyOf={({ name }) => name}
        columns={[
          { name: 'Optimization', cell: ({ name }) => name },
          { name: 'Layer', cell: ({ layer }) => layer },
          { name: 'Phase of a request', cell: ({ phase }) => phase },
          { name: 'Metric that improves', cell: ({ metric }) => metric },
        ]}
      />
      <p className={styles.note}>
        They work on different layers, so their gains add up. The application and its OpenAI-compatible API stay as they
        are.
      </p>
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
          ...extra.map(({ name, value, format }) => ({
            name,
            cell: ({ row }: { row?: BaselineRow }) => valueWithUnit(row && value(row), format),
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
      <p className={styles.note}>
        EAGLE-3 needs a head that was trained for its model, and there is none for Llama 3.1 70B: in phase 3b the
        proposal changes the model to Llama 3.3 70B, of the same architecture. {served(lane)} The recorded runs match
        none of the phases: whether they used speculation is not recorded. {simulated(lane)}
      </p>
    </Section>
  );
}

/** Returns the column of a phase in a baseline, as a side of a report. */
function side({ name: baseline }: Baseline, { mode, speculation }: Phase): ReportSide {
  return { baseline, mode, speculation };
}

/** The figures that speculation adds to a row. The table has a column for each that a row has. */
const speculative = (['acceptance_rate', 'tokens_per_step', 'gpu_memory_bytes'] as const).map((key) => ({
  ...valueFigure(key),
  format: figureFormats[key],
}));

function sourceNote(phase: Phase, lane: LaneSnapshot | undefined, row: BaselineRow | undefined): string {
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
): BaselineRow | undefined {
  return baselines
    ?.filter((baseline) => baseline.kind === 'measured')
    .flatMap((baseline) => baseline.rows)
    .find((row) => isPhase(phase, row) && row.concurrency === lane?.state.concurrency.target);
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
  optimizations: { maxWidth: 960, marginBottom: theme.spacing(1) },
  table: {
    minWidth: 960,
    margin: theme.spacing(2, 0, 1),
    '& th, & td': { whiteSpace: 'nowrap' },
    '& th': { fontWeight: theme.typography.fontWeightMedium },
    '& small': { display: 'inline' },
  },
  text: { minWidth: '36ch', whiteSpace: 'normal !important' as 'normal', textWrap: 'pretty' },
  now: [markedRow(theme), { '&& > :first-child': { boxShadow: `inset 3px 0 0 ${theme.colors.primary.main}` } }],
  note: { margin: 0, color: theme.colors.text.secondary, textWrap: 'pretty' },
}));
