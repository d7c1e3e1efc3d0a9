import React, { memo } from 'react';

import { useStyles2 } from '@grafana/ui';

import type { SweepRequest, TrialState } from '../../client';
import { visuallyHidden } from '../../lib/styles';
import { metricName, metricValue } from './metrics';
import { getTableStyles } from './table';
import { armsOf, differenceWithInterval, outcomeText } from './trial';

interface DifferencesProps {
  trial: TrialState;
  request: SweepRequest;
}

const CAPTION = 'Differences between the two modes, with their 95 % intervals';

/** Each metric of a trial in both modes; the first one decides. */
export const Differences = memo(function Differences({ trial: { primary, others }, request }: DifferencesProps) {
  const styles = useStyles2(getTableStyles);
  const [a, b] = armsOf(request);
  const all = primary ? [primary, ...others] : others;
  if (all.length === 0) {
    return null;
  }
  return (
    <div className={styles.container} tabIndex={0} role="group" aria-label={CAPTION}>
      <table className={styles.table}>
        <caption className={visuallyHidden}>{CAPTION}</caption>
        <thead>
          <tr>
            <th scope="col">Metric</th>
            {[a, b, 'Difference'].map((name) => (
              <th key={name} scope="col" className={styles.figure}>
                {name}
              </th>
            ))}
            <th scope="col">What that shows</th>
          </tr>
        </thead>
        <tbody>
          {all.map((one) => (
            <tr key={one.metric}>
              <th scope="row">
                {metricName(one.metric)}
                {one === primary && <span className={styles.beside}>primary: it decides</span>}
              </th>
              <td className={styles.figure}>{metricValue(one.metric, one.a)}</td>
              <td className={styles.figure}>{metricValue(one.metric, one.b)}</td>
              <td className={styles.figure}>{differenceWithInterval(one)}</td>
              <td>{outcomeText(one, request)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
});
