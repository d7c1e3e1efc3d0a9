import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Baseline, Settings } from '../../client';
import { milliseconds } from '../../lib/format';
import { sloMarks } from '../Comparison';

/** What the signs and words of the table mean. */
export function Notes({ baseline, settings: { slo } }: { baseline: Baseline; settings: Settings }) {
  const styles = useStyles2(getStyles);
  const derived = baseline.rows.some((row) => row.tpot_derived.p95 !== undefined);
  return (
    <ul className={styles.notes}>
      <li>
        SLO: TTFT p95 ≤ {milliseconds(slo.ttft, 0)}, TPOT p95 ≤ {milliseconds(slo.tpot, 0)}
      </li>
      {Object.values(sloMarks).map(({ sign, words }) => (
        <li key={sign}>
          <b>{sign}</b> {words}
        </li>
      ))}
      <li>Improvement: of KV-aware over round-robin; with + it is better</li>
      {derived && (
        <li>
          <i>derived</i>: computed from other percentiles when it was recorded, and compared with nothing live
        </li>
      )}
    </ul>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  notes: css({
    display: 'flex',
    flexWrap: 'wrap',
    gap: theme.spacing(0, 2),
    margin: 0,
    padding: 0,
    listStyle: 'none',
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
  }),
});
