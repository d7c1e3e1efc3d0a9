import { memo, useMemo } from 'react';

import { useBaselines, useLive, type BaselineRow, type Sweep } from '../../client';
import { meanTTFT } from '../../lib/figures';
import { digits, number } from '../../lib/format';
import { levelsName, levelText } from '../../lib/level';
import { modeKey, modeText } from '../../lib/names';
import { recordedTable } from '../../lib/recorded';
import { sloOfRow } from '../../lib/slo';
import { Chart, ChartFigure, ChartGrid, type LegendItem } from '../Chart';
import { SLOValue } from '../Comparison';
import { DataTable, type Column } from '../DataTable';
import { metricsOf, range, type Metric } from './metrics';
import { comparableRows, curvesOf, linesOf, recordedFor } from './model';
import { useTableStyles } from './table';

/** The measurements of a sweep beside recorded ones: curves where it has several levels, and all figures as a table. */
export function SweepFigures({ sweep }: { sweep: Sweep }) {
  const recorded = useRecorded(sweep);
  const { rows, request } = sweep;
  if (rows.length === 0) {
    return <p role="status">No valid span yet: figures appear with the first one.</p>;
  }
  return (
    <>
      {(request.levels ?? []).length > 1 && <SweepCurves sweep={sweep} recorded={recorded} />}
      <SweepTable sweep={sweep} recorded={recorded} />
    </>
  );
}

/** The recorded results that are comparable with a sweep's figures. */
interface Recorded {
  title: string;
  rows: BaselineRow[];
}

/** Returns the recorded table's rows of a sweep's modes and range of levels; undefined without any. */
function useRecorded({ lane, rows, request: { slo } }: Sweep): Recorded | undefined {
  const live = useLive(lane);
  const { value } = useBaselines(slo);
  const table = recordedTable(value, live.lane);
  return useMemo(() => {
    const beside = table ? comparableRows(rows, table.rows) : [];
    return table && beside.length > 0 ? { title: table.title, rows: beside } : undefined;
  }, [table, rows]);
}

interface SweepFiguresProps {
  sweep: Sweep;
  recorded?: Recorded;
}

/** Each metric against the level, by mode, with the 95 % intervals as bands. */
const SweepCurves = memo(function SweepCurves({ sweep: { rows, request }, recorded }: SweepFiguresProps) {
  const curves = useMemo(() => curvesOf(rows, recorded?.rows ?? [], request), [rows, recorded, request]);
  const by = levelsName([...(request.levels ?? []), ...rows.map(({ concurrency }) => concurrency)]).toLowerCase();
  const legend: LegendItem[] = [
    ...linesOf(rows, meanTTFT).map(({ key, name, tone, look }) => ({ key, tone, look, words: name })),
    {
      key: 'measured',
      words: (
        <>
          <b>measured</b>, with its 95 % interval
        </>
      ),
    },
  ];
  if (recorded) {
    const words = (
      <>
        <b>recorded</b>: {recorded.title}
      </>
    );
    legend.push({ key: 'recorded', look: 'dashed', words });
  }
  return (
    <ChartGrid least={320} stretched legend={legend}>
      {curves.map(({ metric: { key, name, heading }, ...drawing }) => (
        <ChartFigure key={key} caption={heading}>
          <Chart label={`${name} by ${by} and mode; figures in the table`} {...drawing} />
        </ChartFigure>
      ))}
    </ChartGrid>
  );
});

/** The figures of each level and mode or arm over all spans that count, beside the recorded ones of the same level. */
const SweepTable = memo(function SweepTable({ sweep: { rows, request }, recorded }: SweepFiguresProps) {
  const styles = useTableStyles();
  const metrics = metricsOf(rows);
  const levels = levelsName(rows.map(({ concurrency }) => concurrency));
  const side = request.kind === 'trial' ? 'arm' : 'mode';
  const columns: Array<Column<BaselineRow>> = [
    { name: levels, cell: ({ concurrency }) => levelText(concurrency) },
    { name: side === 'arm' ? 'Arm' : 'Mode', className: styles.word, cell: modeText },
    ...metrics.map((metric) => ({
      name: metric.heading,
      className: styles.figure,
      cell: (row: BaselineRow) => (
        <Figure metric={metric} row={row} recorded={recorded && recordedFor(row, recorded.rows)} slo={request.slo} />
      ),
    })),
    { name: 'Turns', className: styles.figure, cell: ({ n }) => number(n) },
  ];
  return (
    <DataTable
      label={`Figures by ${levels.toLowerCase()} and ${side}, with their 95 % intervals`}
      className={styles.table}
      columns={columns}
      rows={rows}
      keyOf={(row) => `${row.concurrency} ${modeKey(row)}`}
    />
  );
});

interface FigureProps {
  metric: Metric;
  row: BaselineRow;
  recorded?: BaselineRow;
  slo: Sweep['request']['slo'];
}

function Figure({ metric: { format, value, interval, slo: objective }, row, recorded, slo }: FigureProps) {
  const styles = useTableStyles();
  const measured = value(row);
  const around = interval(row);
  const before = recorded && value(recorded);
  const level = objective && sloOfRow(row, objective, measured, slo);
  return (
    <>
      <SLOValue level={level}>{digits(measured, format)}</SLOValue>
      {around && <span className={styles.beside}>{range(around, format)}</span>}
      {before !== undefined && <span className={styles.beside}>recorded {digits(before, format)}</span>}
    </>
  );
}
