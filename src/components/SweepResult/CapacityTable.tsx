import React, { memo } from 'react';

import { useStyles2 } from '@grafana/ui';

import type { Capacity, ModeCapacity } from '../../client';
import { DASH, number } from '../../lib/format';
import { visuallyHidden } from '../../lib/styles';
import { modeText } from '../../lib/names';
import { keyOf } from './model';
import { getTableStyles } from './table';

const CAPTION = 'Conversations that each mode sustains within the SLOs';

/** What each mode sustains, with its 95 % interval, and what was tested. */
export const CapacityTable = memo(function CapacityTable({ capacity: { modes } }: { capacity: Capacity }) {
  const styles = useStyles2(getTableStyles);
  return (
    <div className={styles.container} tabIndex={0} role="group" aria-label={CAPTION}>
      <table className={styles.table}>
        <caption className={visuallyHidden}>{CAPTION}</caption>
        <thead>
          <tr>
            <th scope="col">Mode</th>
            {['Sustains', '95 % interval', 'Levels tested', 'Isolated passes above'].map((name) => (
              <th key={name} scope="col" className={styles.figure}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {modes.map((one) => (
            <tr key={keyOf(one.mode)}>
              <th scope="row">{modeText(one.mode)}</th>
              <td className={styles.figure}>{sustains(one)}</td>
              <td className={styles.figure}>
                {one.interval ? one.interval.map((level) => number(level)).join('–') : DASH}
              </td>
              <td className={styles.figure}>{number(one.tested.length)}</td>
              <td className={styles.figure}>{one.isolated.map((level) => number(level)).join(', ') || DASH}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
});

/** How many conversations a mode sustains, in words. */
function sustains({ level, above }: ModeCapacity): string {
  if (level === undefined) {
    return 'not known yet';
  }
  if (level === 0) {
    return 'not even the lowest level';
  }
  return above ? `${number(level)} or more` : number(level);
}
