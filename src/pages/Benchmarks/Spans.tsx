import type { SweepSpan } from '../../client';
import { SpanTable } from '../../components/SweepResult';
import { number } from '../../lib/format';
import { levelText } from '../../lib/level';
import { modeText } from '../../lib/names';
import { stylesOf } from '../../lib/styles';

/** The spans that do not count with the reasons, and on request all spans. */
export function Spans({ spans }: { spans: SweepSpan[] }) {
  const styles = useStyles();
  const spoiled = spans.filter((span) => span.spoiled);
  if (spans.length === 0) {
    return null;
  }
  return (
    <div>
      {spoiled.length > 0 && (
        <>
          <h3 className={styles.title}>Spoiled spans</h3>
          <ul className={styles.list} aria-label="Spoiled spans">
            {spoiled.map((span) => (
              <li key={keyOf(span)}>
                {title(span)}: {span.spoiled}. It does not count.
              </li>
            ))}
          </ul>
        </>
      )}
      <details className={styles.details}>
        <summary>
          All {number(spans.length)} {spans.length === 1 ? 'span' : 'spans'}
        </summary>
        <SpanTable spans={spans} />
      </details>
    </div>
  );
}

function keyOf({ number: k, attempt }: SweepSpan): string {
  return `${k} ${attempt}`;
}

function title({ number: k, attempt, arm, mode, concurrency }: SweepSpan): string {
  const pilot = arm === 'pilot' ? ', the pilot' : '';
  return (
    `Span ${number(k + 1)}${pilot}${attempt > 1 ? `, attempt ${attempt}` : ''}, ` +
    `${modeText(mode)} at ${levelText(concurrency)}`
  );
}

const useStyles = stylesOf((theme) => ({
  title: { ...theme.typography.h5, margin: theme.spacing(1, 0, 0.5) },
  list: { margin: 0, paddingLeft: theme.spacing(2.5), fontVariantNumeric: 'tabular-nums' },
  details: { '& summary': { cursor: 'pointer', color: theme.colors.text.secondary } },
}));
