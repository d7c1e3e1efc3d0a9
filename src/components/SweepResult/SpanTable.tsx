import { memo } from 'react';
import { cx } from '@emotion/css';

import type { SweepSpan } from '../../client';
import { milliseconds, number, span as duration } from '../../lib/format';
import { visuallyHidden } from '../../lib/styles';
import { modeText } from '../../lib/names';
import { clock } from '../../lib/time';
import { countedSeconds, spanOutcome } from './model';
import { useTableStyles } from './table';

const CAPTION = 'Spans, newest first, and whether they count';

/** Every span that has ended, those that do not count with the reason. */
export const SpanTable = memo(function SpanTable({ spans }: { spans: SweepSpan[] }) {
  const styles = useTableStyles();
  if (spans.length === 0) {
    return <p role="status">No span has ended yet.</p>;
  }
  const isTrial = spans[0].arm !== undefined;
  return (
    <div className={styles.container} tabIndex={0} role="group" aria-label={CAPTION}>
      <table className={styles.table}>
        <caption className={visuallyHidden}>{CAPTION}</caption>
        <thead>
          <tr>
            <th scope="col">Span</th>
            <th scope="col">{isTrial ? 'Arm' : 'Mode'}</th>
            {['Concurrency', 'TTFT p95', 'Turns', 'Failed', 'Counted time'].map((name) => (
              <th key={name} scope="col" className={styles.figure}>
                {name}
              </th>
            ))}
            <th scope="col">Caches made cold by</th>
            <th scope="col">Seed</th>
            <th scope="col">Ended</th>
            <th scope="col">Outcome</th>
          </tr>
        </thead>
        <tbody>
          {[...spans].reverse().map((one) => (
            <Row key={`${one.number} ${one.attempt}`} span={one} />
          ))}
        </tbody>
      </table>
    </div>
  );
});

function Row({ span }: { span: SweepSpan }) {
  const styles = useTableStyles();
  const { attempt, lane, mode, concurrency, row, turns, failed, until, spoiled, cold, seed } = span;
  return (
    <tr>
      <th scope="row">
        {number(span.number + 1)}
        {attempt > 1 && ', second attempt'}
      </th>
      <td className={styles.word}>
        {modeText(mode)}
        {lane && `, lane ${lane}`}
      </td>
      <td className={styles.figure}>{number(concurrency)}</td>
      <td className={styles.figure}>{milliseconds(row?.ttft.p95)}</td>
      <td className={styles.figure}>{number(turns)}</td>
      <td className={styles.figure}>{number(failed)}</td>
      <td className={styles.figure}>{duration(countedSeconds(span))}</td>
      <td className={styles.word}>{cold === 'nonce' ? 'own texts' : 'cleared caches'}</td>
      <td>{seed}</td>
      <td>{clock(until)}</td>
      <td className={cx(styles.reason, spoiled && styles.spoiled)}>{spanOutcome(span)}</td>
    </tr>
  );
}
