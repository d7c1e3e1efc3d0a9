import { Alert, LoadingPlaceholder } from '@grafana/ui';

import type { Polled, TokenCounts, TrafficPreview } from '../../client';
import { number, percent, span } from '../../lib/format';
import { levelWords } from '../../lib/level';
import { COLUMN, stylesOf, WRAP } from '../../lib/styles';
import { Facts } from '../Facts';

interface PreviewProps {
  of: Polled<TrafficPreview>;
  /** Whether a refusal is shown at a field. */
  isAtField: boolean;
}

/** What the traffic would be, before any of it is sent. */
export function Preview({ of: { value, problem }, isAtField }: PreviewProps) {
  const styles = useStyles();
  if (problem && isAtField) {
    return null;
  }
  if (problem) {
    return (
      <Alert severity="info" title="No preview" bottomSpacing={0}>
        {problem.message}
      </Alert>
    );
  }
  if (!value) {
    return <LoadingPlaceholder text="Computing the preview…" />;
  }
  return (
    <section className={styles.preview} aria-label="Preview of the traffic">
      <Facts of={factsOf(value)} />
      <div className={styles.charts}>
        <Bars
          title={`Requests in ${span(value.seconds)}`}
          values={value.requests_over_time}
          ends={['0 s', span(value.seconds)]}
        />
        <Lengths title="Prompts" of={value.input_tokens} />
        <Lengths title="Answers" of={value.output_tokens} />
        <HitRates of={value} />
      </div>
    </section>
  );
}

function factsOf(preview: TrafficPreview): Array<[term: string, value: string]> {
  const { caches, turns, cut } = preview;
  return [
    ['Level', levelWords(preview.concurrency)],
    ['Requests', `${number(preview.requests)} in ${number(preview.conversations)} conversations`],
    ['Turns', `${number(turns.mean, 1)}, at most ${number(turns.max)}`],
    ['Working set', `${number(preview.reused_blocks)} blocks of ${number(preview.block_tokens)} tokens`],
    ...(caches ? [['Caches', `${number(caches.workers)} × ${number(caches.worker_blocks)} blocks`] as const] : []),
    ...(cut ? [['Cut after', span(preview.seconds)] as const] : []),
  ].map(([term, value]) => [term, value]);
}

/** The hit rates that caches could have, of which the first ones are possible for no router. */
function HitRates({ of: { hit_ratio, caches } }: { of: TrafficPreview }) {
  const styles = useStyles();
  const rows: Array<[name: string, ratio: number | undefined]> = [
    ['Unlimited cache', hit_ratio],
    ...(caches ? [['One cache of all workers’ size', caches.hit_ratio] satisfies (typeof rows)[number]] : []),
    ...(caches?.policies ?? [])
      .filter(({ policy }) => policy !== 'best')
      .map(({ title, figures }): (typeof rows)[number] => [title.replace(/:.*/, ''), figures.hit_ratio])
      .sort(([, a = 0], [, b = 0]) => b - a),
  ];
  return (
    <figure className={styles.bars}>
      <figcaption>Hit rate</figcaption>
      <dl className={styles.hits}>
        {rows.map(([name, ratio]) => (
          <div key={name} style={{ ['--share' as string]: `${100 * (ratio ?? 0)}%` }}>
            <dt>{name}</dt>
            <dd>{percent(ratio)}</dd>
          </div>
        ))}
      </dl>
    </figure>
  );
}

function Lengths({ title, of: { p50, p95, max, bins } }: { title: string; of: TokenCounts }) {
  const last = bins.at(-1)?.up_to ?? 0;
  return (
    <Bars
      title={`${title}: ${number(p50)} tokens, p95 ${number(p95)}, max ${number(max)}`}
      values={bins.map(({ n }) => n)}
      ends={['1', number(last)]}
    />
  );
}

interface BarsProps {
  title: string;
  values: number[];
  /** What is at the ends of the axis. */
  ends: [from: string, to: string];
}

/** A small chart of counts. Its title has the figures, so that it is a picture only. */
function Bars({ title, values, ends }: BarsProps) {
  const styles = useStyles();
  const most = Math.max(1, ...values);
  return (
    <figure className={styles.bars}>
      <figcaption>{title}</figcaption>
      <svg viewBox={`0 0 ${Math.max(1, values.length)} 1`} preserveAspectRatio="none" aria-hidden="true">
        {values.map((value, i) => (
          <rect key={i} x={i + 0.05} width={0.9} y={1 - value / most} height={value / most} />
        ))}
      </svg>
      <div className={styles.ends} aria-hidden="true">
        <span>{ends[0]}</span>
        <span>{ends[1]}</span>
      </div>
    </figure>
  );
}

const useStyles = stylesOf((theme) => ({
  preview: { ...COLUMN, gap: theme.spacing(1) },
  charts: { ...WRAP, gap: theme.spacing(1, 3) },
  bars: {
    ...theme.typography.bodySmall,
    flex: '1 1 240px',
    margin: 0,
    '& svg': { display: 'block', width: '100%', height: theme.spacing(10), fill: theme.colors.primary.main },
  },
  hits: {
    margin: 0,
    fontVariantNumeric: 'tabular-nums',
    '& > div': {
      display: 'flex',
      justifyContent: 'space-between',
      gap: theme.spacing(1),
      marginTop: 2,
      padding: theme.spacing(0, 0.5),
      background: `linear-gradient(${theme.colors.primary.transparent} 0 0) no-repeat left / var(--share) 100%`,
    },
    '& dt': { fontWeight: theme.typography.fontWeightRegular },
    '& dd': { margin: 0 },
  },
  ends: { display: 'flex', justifyContent: 'space-between', color: theme.colors.text.secondary },
}));
