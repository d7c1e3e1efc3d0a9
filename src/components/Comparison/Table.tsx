import React, { type CSSProperties } from 'react';
import { css, cx } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { Icon, useStyles2, type IconName } from '@grafana/ui';

import { visuallyHidden } from '../../lib/styles';
import type { SLOLevel } from '../../lib/slo';
import type { Cell, Head, TableModel } from './model';

/** How large the text is: normal, or to be read from a distance. */
export type TextSize = 'normal' | 'large';

interface TableProps {
  caption: string;
  /** What the rows are. */
  corner: string;
  /** How wide the names of the rows are. */
  nameWidth: string;
  table: TableModel;
  size: TextSize;
}

/** A table of values, live beside recorded. */
export function Table({ caption, corner, nameWidth, table, size }: TableProps) {
  const styles = useStyles2(getStyles);
  const scale = { '--columns': table.heads.length, '--first': nameWidth } as CSSProperties;
  return (
    <div className={styles.container}>
      <table className={cx(styles.table, size === 'large' && styles.large)} style={scale}>
        <caption className={styles.hidden}>{caption}</caption>
        <thead>
          <tr>
            <th scope="col">{corner}</th>
            {table.heads.map((head) => (
              <HeadCell key={head.key} head={head} />
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row) => (
            <tr key={row.name}>
              <th scope="row">{row.name}</th>
              {row.cells.map((cell, i) => (
                <ValueCell key={table.heads[i].key} cell={cell} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function HeadCell({ head }: { head: Head }) {
  const styles = useStyles2(getStyles);
  return (
    <th scope="col" className={head.live ? styles.liveHead : undefined}>
      {head.label}
      <small className={styles.note}>{head.note}</small>
    </th>
  );
}

function ValueCell({ cell }: { cell: Cell }) {
  const styles = useStyles2(getStyles);
  const [value, unit] = cell.text.split(' ');
  return (
    <td className={cell.live ? styles.live : styles.recorded}>
      <span className={cx(styles.value, cell.slo && styles[cell.slo])}>
        <span>
          {value}
          {unit && <small> {unit}</small>}
        </span>{' '}
        {cell.slo && <SLOMark level={cell.slo} />}
      </span>
      {cell.interval && (
        <small className={styles.interval}>
          <span className={styles.hidden}>95 % interval </span>
          {cell.interval}
        </small>
      )}
      {cell.difference && <small className={styles[cell.difference.kind]}>{cell.difference.text}</small>}
      {cell.tag && <small className={styles.tag}>{cell.tag}</small>}
    </td>
  );
}

/** How each level is shown beside its colour. */
export const sloMarks: Record<SLOLevel, { icon: IconName; words: string }> = {
  met: { icon: 'check', words: 'meets the SLO' },
  near: { icon: 'exclamation-triangle', words: 'meets the SLO, but is near it' },
  missed: { icon: 'times', words: 'misses the SLO' },
};

function SLOMark({ level }: { level: SLOLevel }) {
  const styles = useStyles2(getStyles);
  const { icon, words } = sloMarks[level];
  return (
    <>
      <Icon name={icon} size="sm" className={styles.mark} />
      <span className={styles.hidden}>{words}</span>
    </>
  );
}

const getStyles = (theme: GrafanaTheme2) => {
  const line = { display: 'block', fontSize: '0.72em', lineHeight: 1.25 };
  const { success, warning, error, text, border, background } = theme.colors;
  return {
    hidden: visuallyHidden,
    container: css({ containerType: 'inline-size', minWidth: 0 }),
    table: css({
      width: '100%',
      tableLayout: 'fixed',
      fontVariantNumeric: 'tabular-nums',
      '& th, & td': {
        padding: theme.spacing(0.5, 0.75),
        textAlign: 'right',
        verticalAlign: 'baseline',
        overflowWrap: 'break-word',
        borderBottom: `1px solid ${border.weak}`,
      },
      '& th': { fontWeight: theme.typography.fontWeightMedium },
      '& th:first-child': { width: 'var(--first)', textAlign: 'left', paddingLeft: 0 },
      '& thead th': { verticalAlign: 'bottom', color: text.secondary, borderBottomColor: border.medium },
      '& small': { fontSize: '0.72em' },
    }),
    large: css({
      // As large as the columns allow: a value with its unit takes about five letters' height.
      fontSize: 'clamp(13px, calc(100cqi / (var(--columns) + 1.4) / 5.2), 44px)',
    }),
    liveHead: css({ '&&': { color: text.primary, background: background.secondary } }),
    note: css({ display: 'block', minHeight: '1.25em', fontWeight: theme.typography.fontWeightRegular }),
    live: css({
      color: text.primary,
      background: background.secondary,
      '& > span': { fontWeight: theme.typography.fontWeightBold },
    }),
    recorded: css({ color: text.secondary }),
    value: css({ '& > span:first-child': { whiteSpace: 'nowrap' } }),
    mark: css({ verticalAlign: 'middle' }),
    met: css({ color: success.text }),
    near: css({ color: warning.text }),
    missed: css({ color: error.text }),
    interval: css({ ...line, color: text.secondary, '@container (max-width: 640px)': { display: 'none' } }),
    better: css({ ...line, color: success.text }),
    worse: css({ ...line, color: error.text }),
    same: css({ ...line, color: text.secondary }),
    tag: css({ ...line, color: text.secondary, fontStyle: 'italic' }),
  };
};
