import { memo } from 'react';

import { Arrow, Diagram, type LineKind } from '../../components/Diagram';
import { stylesOf, WRAP } from '../../lib/styles';
import { MAX_DOTS } from './chaser';

const lines: Array<{ kind: LineKind; words: string }> = [
  { kind: 'solid', words: 'requests' },
  { kind: 'dashed', words: 'discovery' },
  { kind: 'dotted', words: 'cache events' },
  { kind: 'faint', words: 'metrics' },
];

/** The legend of lines and lights. */
export const Legend = memo(function Legend({ still }: { still?: string }) {
  const styles = useStyles();
  return (
    <div className={styles.legend}>
      {lines.map(({ kind, words }) => (
        <span key={kind} className={styles.line}>
          <span className={styles.sample}>
            <Diagram label={`${kind} line`} picture width={48} height={12}>
              <Arrow kind={kind} path="M 0 6 H 46" />
            </Diagram>
          </span>
          {words}
        </span>
      ))}
      <span>
        {still ??
          'Dots are a sample, not individual requests: roughly one per completed request, at most ' +
            `${MAX_DOTS} per second, distributed over the workers by their share of the requests ` +
            'routed in the last 10 s.'}
      </span>
    </div>
  );
});

const useStyles = stylesOf((theme) => ({
  legend: {
    ...WRAP,
    gap: theme.spacing(0.5, 2),
    margin: theme.spacing(1, 0),
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
  },
  line: { display: 'inline-flex', alignItems: 'center', gap: theme.spacing(0.5) },
  sample: { width: 48, flex: 'none' },
}));
