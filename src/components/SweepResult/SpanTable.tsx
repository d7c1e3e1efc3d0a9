import { memo } from 'react';
import { cx } from '@emotion/css';

import type { SweepSpan } from '../../client';
import { milliseconds, number, span as duration } from '../../lib/format';
import { levelsName, levelText } from '../../lib/level';
import { modeText } from '../../lib/names';
import { clock } from '../../lib/time';
import { DataTable, type Column } from '../DataTable';
import { countedSeconds, spanOutcome } from './model';
import { useTableStyles } from './table';

/** Every span that has ended, those that do not count with the reason. */
export const SpanTable = memo(function SpanTable({ spans }: { spans: SweepSpan[] }) {
  const styles = useTableStyles();
  if (spans.length === 0) {
    return <p role="status">No span has ended yet.</p>;
  }
  const figure = (name: string, cell: Column<SweepSpan>['cell']) => ({ name, cell, className: styles.figure });
  const columns: Array<Column<SweepSpan>> = [
    { name: 'Span', cell: ({ number: k, attempt }) => `${number(k + 1)}${attempt > 1 ? ', second attempt' : ''}` },
    {
      name: spans[0].arm === undefined ? 'Mode' : 'Arm',
      className: styles.word,
      cell: ({ mode, lane }) => `${modeText(mode)}${lane ? `, lane ${lane}` : ''}`,
    },
    figure(levelsName(spans.map(({ concurrency }) => concurrency)), ({ concurrency }) => levelText(concurrency)),
    figure('TTFT p95', ({ row }) => milliseconds(row?.ttft.p95)),
    figure('Turns', ({ turns }) => number(turns)),
    figure('Failed', ({ failed }) => number(failed)),
    figure('Counted time', (span) => duration(countedSeconds(span))),
    {
      name: 'Caches made cold by',
      className: styles.word,
      cell: ({ cold }) => (cold === 'nonce' ? 'own texts' : 'cleared caches'),
    },
    { name: 'Seed', cell: ({ seed }) => seed },
    { name: 'Ended', cell: ({ until }) => clock(until) },
    {
      name: 'Outcome',
      className: styles.reason,
      cell: (span) => <span className={cx(span.spoiled && styles.spoiled)}>{spanOutcome(span)}</span>,
    },
  ];
  return (
    <DataTable
      label="Spans, newest first, and whether they count"
      className={styles.table}
      columns={columns}
      rows={[...spans].reverse()}
      keyOf={({ number: k, attempt }) => `${k} ${attempt}`}
    />
  );
});
