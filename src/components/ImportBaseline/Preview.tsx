import { useMemo } from 'react';

import type { Baseline, Settings } from '../../client';
import { settingsOf } from '../../lib/deployment';
import { provenanceOf } from '../../lib/provenance';
import { COLUMN, stylesOf } from '../../lib/styles';
import { BenchmarkTable } from '../Benchmark/BenchmarkTable';
import { toBenchmark } from '../Benchmark/model';
import { SustainedLine } from '../Benchmark/SustainedLine';
import { summary } from './file';

interface PreviewProps {
  baseline: Baseline;
  /** The SLOs that color the table; without them it has no colors. */
  settings: Settings | undefined;
}

/** Preview of a file, before it is imported. */
export function Preview({ baseline, settings }: PreviewProps) {
  const styles = useStyles();
  const model = useMemo(() => settings && toBenchmark(baseline, settings, true), [baseline, settings]);
  const known = settingsOf(baseline.deployment).filter(({ value }) => value !== undefined);
  return (
    <section className={styles.preview} aria-label="Preview">
      <div className={styles.title}>{baseline.title}</div>
      <div>
        As “{baseline.name}”: {summary(baseline)}.
      </div>
      <div>
        Deployment:{' '}
        {known.length > 0 ? known.map(({ name, value }) => `${name} ${value}`).join(' · ') : 'not in the file'}.
      </div>
      {provenanceOf(baseline).map(({ name, value }) => (
        <div key={name}>
          {name}: {value}
        </div>
      ))}
      {baseline.notes && (
        <ul className={styles.notes} aria-label="Notes">
          {baseline.notes.split('\n').map((line, i) => line.trim() !== '' && <li key={i}>{line}</li>)}
        </ul>
      )}
      <SustainedLine baseline={baseline} />
      {model && model.pairs.length > 0 && (
        <div className={styles.table}>
          <BenchmarkTable caption={`${baseline.title}, preview`} model={model} />
        </div>
      )}
    </section>
  );
}

const useStyles = stylesOf((theme) => ({
  preview: {
    ...COLUMN,
    gap: theme.spacing(0.5),
    padding: theme.spacing(1.5),
    border: `1px solid ${theme.colors.border.medium}`,
    borderRadius: theme.shape.radius.default,
    minWidth: 0,
  },
  notes: { margin: 0, paddingLeft: theme.spacing(2.5), color: theme.colors.text.secondary },
  title: { fontWeight: theme.typography.fontWeightMedium },
  table: { maxHeight: 320, overflow: 'auto' },
}));
