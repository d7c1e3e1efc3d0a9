import type { SweepSpan } from '../../client';
import { SpanTable } from '../../components/SweepResult';
import { number } from '../../lib/format';
import { stylesOf } from '../../lib/styles';

/** All spans, on request, those that do not count with the reasons. */
export function Spans({ spans }: { spans: SweepSpan[] }) {
  const styles = useStyles();
  const spoiled = spans.filter((span) => span.spoiled).length;
  return spans.length === 0 ? null : (
    <details className={styles.details}>
      <summary>
        All {number(spans.length)} {spans.length === 1 ? 'span' : 'spans'}
        {spoiled > 0 && `, ${number(spoiled)} spoiled`}
      </summary>
      <SpanTable spans={spans} />
    </details>
  );
}

const useStyles = stylesOf((theme) => ({
  details: { '& summary': { cursor: 'pointer', color: theme.colors.text.secondary } },
}));
