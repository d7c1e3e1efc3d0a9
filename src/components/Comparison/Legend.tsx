import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import { sloMarks } from './Table';
import { tagMeanings, type Model } from './model';

interface LegendProps {
  model: Model;
  settling: boolean;
}

/** Says what the columns are, and what the tags in use mean. */
export function Legend({ model, settling }: LegendProps) {
  const styles = useStyles2(getStyles);
  return (
    <ul className={styles.legend} aria-label="Legend">
      {settling && (
        <li>
          <b>Settling</b>: the live figures are those of this step so far; they are compared once 60 s of it exist.
        </li>
      )}
      {model.sources.map(({ short, text }) => (
        <li key={short}>
          <b>{short}</b>: {text}
        </li>
      ))}
      {model.sources.length > 0 && !settling && <li>Per cent: live against that value; an interval of 95 % decides</li>}
      {model.tags.map((tag) => (
        <li key={tag}>
          <i>{tag}</i>: {tagMeanings[tag]}
        </li>
      ))}
      {Object.values(sloMarks).map(({ sign, words }) => (
        <li key={sign}>
          <b>{sign}</b> {words}
        </li>
      ))}
    </ul>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  legend: css({
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
