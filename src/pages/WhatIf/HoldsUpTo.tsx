import { Fragment, memo } from 'react';

import type { Mode, Settings } from '../../client';
import { milliseconds } from '../../lib/format';
import { levelText } from '../../lib/level';
import { modeName } from '../../lib/names';
import { stylesOf, WRAP } from '../../lib/styles';
import { holdsUpTo, type Series, type Source } from './series';

interface HoldsUpToProps {
  series: Series[];
  modes: Mode[];
  slo?: Settings['slo'];
}

const sources: Source[] = ['simulated', 'recorded', 'measured'];

/** The highest level up to which each mode keeps TTFT p95 within its objective. */
export const HoldsUpTo = memo(function HoldsUpTo({ series, modes, slo }: HoldsUpToProps) {
  const styles = useStyles();
  const judged = series.find(({ figure }) => figure.slo === 'ttft');
  if (!judged || !slo) {
    return null;
  }
  const rows = sources.flatMap((source) => {
    const levels = modes.flatMap((mode) => {
      const level = holdsUpTo(judged, source, mode);
      return level === undefined ? [] : [{ mode, text: level === 0 ? 'no level' : levelText(level) }];
    });
    return levels.length > 0 ? [{ source, levels }] : [];
  });
  return (
    <div className={styles.holds} role="group" aria-label="Levels within the SLO">
      <span>TTFT p95 ≤ {milliseconds(slo.ttft, 0)} up to a concurrency of:</span>
      {rows.map(({ source, levels }) => (
        <span key={source}>
          {levels.map(({ mode, text }, i) => (
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
