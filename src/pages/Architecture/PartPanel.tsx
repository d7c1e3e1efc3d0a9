import { stylesOf } from '../../lib/styles';
import type { Part } from './parts';

/** Explains a part: its purpose, its numbers, and their sources. */
export function PartPanel({ part }: { part: Part }) {
  const styles = useStyles();
  return (
    <aside className={styles.panel} aria-label="Explanation">
      {/* A screen reader announces the choice of another part, but not each new number. */}
      <h3 aria-live="polite">{part.title}</h3>
      {part.presence.why && <p className={styles.presence}>{part.presence.why}</p>}
      <p>{part.text}</p>
      {part.figures.length > 0 && (
        <dl className={styles.figures}>
          {part.figures.map(({ name, value, source }) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
              <dd className={styles.source}>{source}</dd>
            </div>
          ))}
        </dl>
      )}
      {part.figures.length === 0 && <p className={styles.source}>No metrics are reported for this part.</p>}
    </aside>
  );
}

const useStyles = stylesOf((theme) => ({
  panel: {
    flex: '1 1 260px',
    padding: theme.spacing(2),
    borderRadius: theme.shape.radius.default,
    background: theme.colors.background.secondary,
    fontSize: 'clamp(14px, 1vw, 20px)',
    '& h3': { ...theme.typography.h4, fontSize: '1.3em' },
    '& p': { textWrap: 'pretty' },
  },
  presence: { borderLeft: `4px solid ${theme.colors.warning.border}`, paddingLeft: theme.spacing(1) },
  figures: {
    margin: 0,
    '& > div': { display: 'grid', gridTemplateColumns: '1fr auto', marginBottom: theme.spacing(1) },
    '& dt': { fontWeight: theme.typography.fontWeightRegular },
    '& dd': { margin: 0, fontWeight: theme.typography.fontWeightBold, fontVariantNumeric: 'tabular-nums' },
    '& dd + dd': { gridColumn: '1 / -1', fontWeight: theme.typography.fontWeightRegular },
  },
  source: { color: theme.colors.text.secondary, fontSize: 'max(0.8em, 12px)' },
}));
