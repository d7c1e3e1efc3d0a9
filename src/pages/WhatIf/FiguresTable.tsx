import { memo } from 'react';

import type { Mode } from '../../client';
import { SLOValue } from '../../components/Comparison';
import { DASH, digits } from '../../lib/format';
import type { Level } from '../../lib/level';
import { stylesOf } from '../../lib/styles';
import { LevelTable } from './LevelTable';
import type { FigureInfo, Series, Source, Value } from './series';

interface FiguresTableProps {
  series: Series[];
  levels: Level[];
  modes: Mode[];
}

/** The figures of the charts by level, with their bands, and the recorded or measured ones. */
export const FiguresTable = memo(function FiguresTable({ series, levels, modes }: FiguresTableProps) {
  return (
    <LevelTable
      caption="The simulated figures, level by level"
      columns={series.map((one) => ({
        name: one.figure.heading,
        cell: (mode, level) => <Cell series={one} mode={mode} level={level} />,
      }))}
      modes={modes}
      levels={levels}
    />
  );
});

function Cell({ series: { figure, values, overloads }, mode, level }: { series: Series; mode: Mode; level: Level }) {
  const styles = useStyles();
  const find = (source: Source) =>
    values.find((value) => value.concurrency === level && value.mode === mode && value.source === source);
  const simulated = find('simulated');
  const isOverloaded = overloads.some((one) => one.concurrency === level && one.mode === mode);
  return (
    <div className={styles.cell}>
      {simulated || !isOverloaded ? <Figure figure={figure} value={simulated} /> : 'overloaded'}
      {(['recorded', 'measured'] as const).map((source) => {
        const value = find(source);
        return (
          value && (
            <div key={source}>
              {source} <Figure figure={figure} value={value} />
            </div>
          )
        );
      })}
    </div>
  );
}

/** A value in the unit of its figure, with the mark of its objective and its band; a dash without one. */
function Figure({ figure: { format }, value }: { figure: FigureInfo; value: Value | undefined }) {
  const styles = useStyles();
  if (!value) {
    return <span className={styles.band}>{DASH}</span>;
  }
  const [low, high] = value.band ?? [];
  return (
    <>
      <SLOValue level={value.slo}>
        <b>{digits(value.value, format)}</b>
      </SLOValue>
      {low !== high && (
        <small className={styles.band}>
          {' '}
          {digits(low, format)}–{digits(high, format)}
        </small>
      )}
    </>
  );
}

const useStyles = stylesOf((theme) => ({
  band: { color: theme.colors.text.secondary },
  cell: {
    whiteSpace: 'nowrap',
    '& > small:last-of-type': { display: 'block' }, // the band; the mark of the SLO precedes it
    '& > div': { color: theme.colors.text.secondary, fontSize: theme.typography.bodySmall.fontSize },
  },
}));
