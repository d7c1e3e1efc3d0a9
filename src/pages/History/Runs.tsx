import { memo } from 'react';
import { useQueryClient } from '@tanstack/react-query';

import { Button } from '@grafana/ui';

import { acceptRun, useClient, useLive, useMe, type RunRecord } from '../../client';
import { ActionFailure } from '../../components/Controls/ActionFailure';
import { useAction } from '../../components/Controls/useAction';
import { DataTable, type Column } from '../../components/DataTable';
import { range } from '../../components/SweepResult';
import { digits } from '../../lib/format';
import { arrivalOf } from '../../lib/known';
import { stylesOf } from '../../lib/styles';
import { dateTime } from '../../lib/time';
import { useStable } from '../../lib/useStable';
import { LANE } from '../lane';
import { changesOf, changeText, labelsText, SIGNS, type SeriesRun, type ViewProps } from './model';

/** The key of the history, which a change requests again. */
export const KEY = 'runs';

/** The table of runs, and the request to accept one. */
export function Runs(props: ViewProps) {
  const client = useClient();
  const queries = useQueryClient();
  const live = useLive(LANE);
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
      <Table
        {...props}
        onAccept={useMe()?.canOperate ? accept : undefined}
        disabled={live.lane === undefined || action.busy !== undefined}
      />
    </>
  );
}

interface TableProps extends ViewProps {
  /** Accepts a run, or withdraws that; undefined without the permission. */
  onAccept?(run: RunRecord, accepted: boolean): void;
  disabled: boolean;
}

/** Newest first. */
const Table = memo(function Table({ series, figure, onAccept, disabled }: TableProps) {
  const styles = useStyles();
  const changes = changesOf(series, figure);
  const notesOf = ({ id, accepted, failed, verdict }: RunRecord) => {
    const change = changes.get(id);
    const all = [accepted && `${SIGNS.accepted} Accepted`, failed && `${SIGNS.failed} ${verdict ?? 'Failed'}`];
    return [...all, change && changeText(change)].map((note) => note && <div key={note}>{note}</div>);
  };
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
    { name: 'Notes', isUnnamed: true, cell: ({ run }) => notesOf(run) },
  ];
  if (onAccept) {
    const cell = ({ run }: SeriesRun) => {
      const word = run.accepted ? 'Withdraw' : 'Accept';
      const change = () => onAccept(run, !run.accepted);
      return (
        <Button size="sm" variant="secondary" disabled={disabled} aria-label={`${word} run ${run.id}`} onClick={change}>
          {word}
        </Button>
      );
    };
    columns.push({ name: '', isUnnamed: true, cell });
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

const useStyles = stylesOf(() => ({
  container: { overflowY: 'auto', maxHeight: 420 },
  word: { whiteSpace: 'nowrap' },
  labels: { overflowWrap: 'anywhere' },
}));
