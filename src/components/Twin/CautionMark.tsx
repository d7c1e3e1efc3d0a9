import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Twin } from '../../client';
import { cautionText, cautionWord } from './model';

/** The caution in a few words, to stand beside a figure; nothing where nothing is to be said. */
export function CautionMark({ twin }: { twin: Twin | undefined }) {
  const styles = useStyles2(getStyles);
  const word = twin && cautionWord(twin);
  return word ? (
    <span className={styles.mark} title={cautionText(twin)}>
      {word}
    </span>
  ) : null;
}

const getStyles = (theme: GrafanaTheme2) => ({
  mark: css({ fontStyle: 'italic', fontWeight: theme.typography.fontWeightRegular, color: theme.colors.warning.text }),
});
