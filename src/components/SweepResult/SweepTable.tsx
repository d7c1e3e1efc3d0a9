import { memo } from 'react';

import type { BaselineRow, Sweep } from '../../client';
import { digits, number } from '../../lib/format';
import { sloLevel } from '../../lib/slo';
import { visuallyHidden } from '../../lib/styles';
import { modeKey, modeText } from '../../lib/names';
import { SLOMark } from '../Comparison';
import { metricsOf, range, type Metric } from './metrics';
import { recordedFor } from './model';
import { useTableStyles } from './table';
import type { Recorded } from './useRecorded';

interface SweepTableProps {
  sweep: Sweep;
  recorded?: Recorded;
}

/** The figures of each level and mode or arm over all spans that count, beside the recorded ones of the same level. */
export const SweepTable = memo(function SweepTable({ sweep: { rows, request }, recorded }: SweepTableProps) {
  const styles = useTableStyles();
  const metrics = metricsOf(rows);
  const side = request.kind === 'trial' ? 'arm' : 'mode';
  const caption = `Figures by concurrency and ${side}, with their 95 % intervals`;
  return (
    <div className={styles.container} tabIndex={0} role="group" aria-label={caption}>
      <table className={styles.table}>
        <caption className={visuallyHidden}>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">Concurrency</th>
            <th scope="col">{side === 'arm' ? 'Arm' : 'Mode'}</th>
            {metrics.map(({ key, heading }) => (
              <th key={key} scope="col" className={styles.figure}>
                {heading}
              </th>
            ))}
            <th scope="col" className={styles.figure}>
              Turns
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={`${row.concurrency} ${modeKey(row)}`}>
              <th scope="row">{number(row.concurrency)}</th>
              <td className={styles.word}>{modeText(row)}</td>
              {metrics.map((metric) => (
                <Figure
                  key={metric.key}
                  metric={metric}
                  row={row}
                  recorded={recorded && recordedFor(row, recorded.rows)}
                  slo={request.slo}
                />
              ))}
              <td className={styles.figure}>{number(row.n)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
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
  const level = objective && sloLevel(measured, slo?.[objective], row.errors?.[objective].p95, objective === 'tpot');
  return (
    <td className={styles.figure}>
      <span className={level && styles[level]}>
        {digits(measured, format)} {level && <SLOMark level={level} />}
      </span>
      {around && <span className={styles.beside}>{range(around, format)}</span>}
      {before !== undefined && <span className={styles.beside}>recorded {digits(before, format)}</span>}
    </td>
  );
}
