import { memo } from 'react';

import type { Mode } from '../../client';
import type { Level } from '../../lib/level';
import { stylesOf } from '../../lib/styles';
import { LevelTable } from './LevelTable';
import { Figure, find } from './Figure';
import type { Series } from './series';

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
      columns={series.map(({ figure: { key, heading } }) => ({ key, name: heading }))}
      modes={modes}
      levels={levels}
      cell={(key, mode, level) => {
        const one = series.find(({ figure }) => figure.key === key);
        return one && <Cell series={one} mode={mode} level={level} />;
      }}
    />
  );
});

function Cell({ series: { figure, values, overloads }, mode, level }: { series: Series; mode: Mode; level: Level }) {
  const styles = useStyles();
  const atLevel = values.filter(({ concurrency }) => concurrency === level);
  const simulated = find(atLevel, 'simulated', mode);
  const isOverloaded = overloads.some((one) => one.concurrency === level && one.mode === mode);
  return (
    <div className={styles.cell}>
      {simulated || !isOverloaded ? <Figure figure={figure} value={simulated} /> : 'overloaded'}
      {(['recorded', 'measured'] as const).map((source) => {
        const value = find(atLevel, source, mode);
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

const useStyles = stylesOf((theme) => ({
  cell: {
    whiteSpace: 'nowrap',
    '& > small:last-of-type': { display: 'block' }, // the band; the mark of the SLO precedes it
    '& > div': { color: theme.colors.text.secondary, fontSize: theme.typography.bodySmall.fontSize },
  },
}));
