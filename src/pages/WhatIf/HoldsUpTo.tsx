import { Fragment, memo } from 'react';

import type { Mode, Settings } from '../../client';
import { objective } from '../../lib/format';
import { levelsName, levelText, type Level } from '../../lib/level';
import { modeName } from '../../lib/names';
import { stylesOf, WRAP } from '../../lib/styles';
import { holdsUpTo, type Series, type Source } from './series';

interface HoldsUpToProps {
  series: Series[];
  levels: Level[];
  modes: Mode[];
  slo?: Settings['slo'];
}

const sources: Source[] = ['simulated', 'recorded', 'measured'];

/** The highest level up to which each mode keeps TTFT p95 within its objective. */
export const HoldsUpTo = memo(function HoldsUpTo({ series, levels, modes, slo }: HoldsUpToProps) {
  const styles = useStyles();
  const judged = series.find(({ figure }) => figure.slo === 'ttft');
  if (!judged || !slo) {
    return null;
  }
  const rows = sources.flatMap((source) => {
    const held = modes.flatMap((mode) => {
      const level = holdsUpTo(judged, source, mode);
      return level === undefined ? [] : [{ mode, text: level === 0 ? 'no level' : levelText(level) }];
    });
    return held.length > 0 ? [{ source, held }] : [];
  });
  return (
    <div className={styles.holds} role="group" aria-label="Levels within the SLO">
      <span>
        TTFT p95 ≤ {objective(slo.ttft)} up to a {levelsName(levels).toLowerCase()} of:
      </span>
      {rows.map(({ source, held }) => (
        <span key={source}>
          {held.map(({ mode, text }, i) => (
            <Fragment key={mode}>
              {i > 0 && ', '}
              {modeName(mode)} <b>{text}</b>
            </Fragment>
          ))}{' '}
          <i>{source}</i>
        </span>
      ))}
    </div>
  );
});

const useStyles = stylesOf((theme) => ({
  holds: {
    ...WRAP,
    gap: theme.spacing(0, 2),
    marginBottom: theme.spacing(1),
    fontVariantNumeric: 'tabular-nums',
    '& i': { color: theme.colors.text.secondary },
  },
}));
