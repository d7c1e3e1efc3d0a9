import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Mode } from '../../client';
import { SLOMark } from '../../components/Comparison';
import { sloMarks } from '../../components/Comparison/Table';
import { CurveSign } from '../../components/Curve';
import { DASH, digits, number } from '../../lib/format';
import { modeName } from '../../lib/names';
import { verdicts } from '../../lib/styles';
import type { FigureInfo, Series, Source, Value } from './series';

const sources: Source[] = ['simulated', 'recorded', 'measured'];

/** What is known of a figure at a level: each mode's value, with its band, beside recorded and measured ones. */
export function Reading({ series, modes, level }: { series: Series; modes: Mode[]; level: number }) {
  const styles = useStyles2(getStyles);
  const { figure } = series;
  const here = series.values.filter(({ concurrency }) => concurrency === level);
  const shown = sources.filter((source) => source === 'simulated' || here.some((value) => value.source === source));
  return (
    <table className={styles.reading}>
      <thead>
        <tr>
          <th scope="col">{number(level)}</th>
          {modes.map((mode) => (
            <th key={mode} scope="col">
              <CurveSign tone={mode} /> {modeName(mode)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {shown.map((source) => (
          <tr key={source}>
            <th scope="row">{source}</th>
            {modes.map((mode) => (
              <td key={mode}>
                <Figure figure={figure} value={find(here, source, mode)} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A value in the unit of its figure, as it stands to the objective, with its band; a dash without one. */
export function Figure({ figure: { format }, value }: { figure: FigureInfo; value: Value | undefined }) {
  const styles = useStyles2(getStyles);
  if (!value) {
    return <span className={styles.band}>{DASH}</span>;
  }
  return (
    <>
      <b className={value.slo && styles[value.slo]}>{digits(value.value, format)}</b>
      {value.slo && (
        <>
          {' '}
          <SLOMark level={value.slo} />
        </>
      )}
      {value.band && <small className={styles.band}> {bandText(value.band, format)}</small>}
    </>
  );
}

/** The least and the largest value; nothing where one run is all there is. */
export function bandText([low, high]: [number, number], format: FigureInfo['format']): string {
  return low === high ? '' : `${digits(low, format)}–${digits(high, format)}`;
}

/** The value of a source and mode among those of a level. */
export function find(values: Value[], source: Source, mode: Mode): Value | undefined {
  return values.find((value) => value.source === source && value.mode === mode);
}

/** The same in a sentence, for those who hear it. */
export function readingText({ figure, values }: Series, modes: Mode[], level: number): string {
  const { format, unit } = figure;
  const here = values.filter(({ concurrency }) => concurrency === level);
  const told = sources.flatMap((source) =>
    modes.flatMap((mode) => {
      const value = find(here, source, mode);
      const words = value?.slo ? `, ${sloMarks[value.slo].words}` : '';
      return value ? [`${modeName(mode)} ${source} ${digits(value.value, format)} ${unit}${words}`] : [];
    })
  );
  return [`${number(level)} conversations`, ...(told.length > 0 ? told : ['not computed yet'])].join('; ');
}

const getStyles = (theme: GrafanaTheme2) => {
  const { met, near, missed } = verdicts(theme);
  return {
    reading: css({
      zIndex: 1,
      whiteSpace: 'nowrap',
      fontVariantNumeric: 'tabular-nums',
      border: `1px solid ${theme.colors.border.medium}`,
      borderRadius: theme.shape.radius.default,
      background: theme.colors.background.elevated,
      boxShadow: theme.shadows.z2,
      '& th, & td': { padding: theme.spacing(0.25, 1), textAlign: 'left' },
      '& th': { fontWeight: theme.typography.fontWeightMedium },
      '& tbody th': { color: theme.colors.text.secondary, fontWeight: theme.typography.fontWeightRegular },
    }),
    band: css({ color: theme.colors.text.secondary }),
    met: css(met),
    near: css(near),
    missed: css(missed),
  };
};
