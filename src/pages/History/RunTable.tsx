import { memo } from 'react';

import { Button } from '@grafana/ui';

import type { RunRecord } from '../../client';
import { DataTable, type Column } from '../../components/DataTable';
import { range } from '../../components/SweepResult';
import type { RowFigure } from '../../lib/figures';
import { digits } from '../../lib/format';
import { stylesOf, verdicts } from '../../lib/styles';
import { dateTime } from '../../lib/time';
import { ACCEPTED, changesOf, directionOf, FAILED, labelsText, sizeText, type Series, type SeriesRun } from './model';

interface RunTableProps {
  series: Series;
  figure: RowFigure;
  /** Accepts a run, or withdraws that; undefined without the permission. */
  onAccept?(run: RunRecord, accepted: boolean): void;
  disabled: boolean;
}

/** The runs of a series, newest first. */
export const RunTable = memo(function RunTable({ series, figure, onAccept, disabled }: RunTableProps) {
  const styles = useStyles();
  const changes = changesOf(series, figure);
  const columns: Array<Column<SeriesRun>> = [
    { name: 'Ended', className: styles.word, cell: ({ run: { ended } }) => dateTime(ended, 'minute') },
    { name: 'Run', className: styles.word, cell: ({ run }) => run.id },
    {
      name: figure.heading,
      className: styles.word,
      cell: ({ row }) => {
        const around = figure.interval(row);
        return (
          <>
            {digits(figure.value(row), figure.format)} {around && <small>{range(around, figure.format)}</small>}
          </>
        );
      },
    },
    { name: 'Labels', className: styles.labels, isWide: true, cell: ({ run }) => labelsText(run) },
    {
      name: 'Notes',
      isUnnamed: true,
      cell: ({ run: { id, accepted, failed, verdict } }) => {
        const change = changes.get(id);
        return (
          <>
            {accepted && <div>{ACCEPTED} Accepted</div>}
            {failed && <div>{FAILED} Failed</div>}
            {failed && verdict && <small>{verdict}</small>}
            {change && (
              <div className={styles[directionOf(change)]}>
                {sizeText(change)}, {directionOf(change)}
              </div>
            )}
          </>
        );
      },
    },
  ];
  if (onAccept) {
    columns.push({
      name: '',
      isUnnamed: true,
      cell: ({ run }) => (
        <Button
          size="sm"
          variant="secondary"
          disabled={disabled}
          aria-label={`${run.accepted ? 'Withdraw' : 'Accept'} run ${run.id}`}
          onClick={() => onAccept(run, !run.accepted)}
        >
          {run.accepted ? 'Withdraw' : 'Accept'}
        </Button>
      ),
    });
  }
  return (
    <div className={styles.container}>
      <DataTable
        label="Runs, newest first, with their 95 % intervals"
        stacks
        columns={columns}
        rows={[...series.runs].reverse()}
        keyOf={({ run }) => run.id}
      />
    </div>
  );
});

const useStyles = stylesOf((theme) => ({
  container: { overflowY: 'auto', maxHeight: 420 },
  word: { whiteSpace: 'nowrap' },
  labels: { overflowWrap: 'anywhere' },
  ...verdicts(theme),
}));
