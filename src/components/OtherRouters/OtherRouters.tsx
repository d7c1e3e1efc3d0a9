import { cx } from '@emotion/css';

import { Alert } from '@grafana/ui';

import { readShadow, useClient, useLive, usePolled, type HitCause, type Shadow, type TTFTPart } from '../../client';
import { milliseconds, number, percent } from '../../lib/format';
import { COLUMN, markedRow, stylesOf } from '../../lib/styles';
import { sentence } from '../../lib/text';
import { Bar } from '../Bar';
import { DataTable, type Column } from '../DataTable';
import { Loading, LoadProblem } from '../Loading';
import { errorSentences, factsOf, settlingWords, sourceWords, tokens, toRows, type Row as RowModel } from './model';

const CAUSES: Record<HitCause['kind'], string> = {
  found: 'Found in the cache',
  new: 'New',
  elsewhere: 'On another worker',
  spilled: 'On another worker, by its load',
  evicted: 'Evicted since',
  remainder: 'Behind the last whole block',
  unexplained: 'Not explained',
};

const CAUSE_COLUMNS: Array<Column<HitCause>> = [
  { name: 'Prompt tokens', cell: ({ kind }) => CAUSES[kind] },
  {
    name: 'Share',
    isWide: true,
    cell: ({ share }) => (
      <>
        {percent(share)}
        <Bar share={Math.max(0, share)} />
      </>
    ),
  },
  {
    name: 'Evidence',
    cell: ({ text, remedy }) => [sentence(text), remedy && sentence(remedy)].filter(Boolean).join(' '),
  },
];

const PARTS: Record<TTFTPart['name'], string> = {
  router: 'Router and network',
  queue: 'Queue',
  prefill: 'Prefill',
  rest: 'Rest',
};

const TTFT_COLUMNS: Array<Column<TTFTPart>> = [
  { name: 'Part of TTFT', cell: ({ name }) => PARTS[name] },
  { name: 'Mean', cell: ({ seconds }) => milliseconds(seconds) },
  { name: 'Where', cell: ({ text }) => sentence(text) },
];

const ttftOf = (parts: TTFTPart[]) => milliseconds(parts.reduce((sum, { seconds }) => sum + seconds, 0));

/** The interval between requests for the account, in milliseconds. */
const SHADOW_EVERY = 2000;

/** The cache hits that other routers would have had on a lane's traffic, beside the measured ones. */
export function OtherRouters({ lane }: { lane: string }) {
  const client = useClient();
  const live = useLive('main'); // every snapshot has all lanes
  const active = live.state.status === 'live';
  const { value, problem } = usePolled(
    active ? () => readShadow(client, lane) : undefined,
    SHADOW_EVERY,
    `shadow ${lane}`
  );
  if (live.state.status === 'lost') {
    return <p>No data on other routers: the load generator is unreachable.</p>;
  }
  return (
    <>
      <LoadProblem what="figures of other routers" problem={problem} />
      {!value && !problem && <Loading text="Loading other routers…" />}
      {value && <ShadowView shadow={value} />}
    </>
  );
}

function ShadowView({ shadow }: { shadow: Shadow }) {
  const styles = useStyles();
  const { source, message, withheld, diagnoses } = shadow;
  if (source === 'none') {
    return <p className={styles.note}>{sentence(message ?? 'no other routers are computed for this lane')}</p>;
  }
  const settling = settlingWords(shadow);
  const isUnreliable = ({ accounted }: RowModel) => withheld !== undefined && accounted;
  const columns: Array<Column<RowModel>> = [
    {
      name: 'Routing policy',
      cell: (row) => (
        <>
          {row.title} {row.word && <small>{row.word}</small>}
          {isUnreliable(row) && <small>unreliable</small>}
        </>
      ),
    },
    {
      name: 'KV hit rate',
      isWide: true,
      cell: ({ figures: { hit_ratio: ratio } }) => (
        <>
          {percent(ratio)}
          <Bar share={ratio ?? 0} />
        </>
      ),
    },
    { name: 'Tokens to prefill', cell: ({ figures }) => tokens(figures.prefill_tokens) },
    { name: 'Spread of requests in flight', cell: ({ figures }) => number(figures.inflight_spread, 1) },
  ];
  if (settling) {
    return (
      <p className={styles.note} role="status">
        {settling} {sourceWords(shadow)}
      </p>
    );
  }
  return (
    <div className={styles.all}>
      {withheld && (
        <Alert severity="warning" title="The figures of other routers are unreliable" bottomSpacing={0}>
          {sentence(withheld)}
        </Alert>
      )}
      {diagnoses.length > 0 && (
        <ul className={styles.diagnoses} aria-label={`What the figures of lane ${shadow.lane} show`}>
          {diagnoses.map(({ rule, text }) => (
            <li key={rule}>{sentence(text)}</li>
          ))}
        </ul>
      )}
      {shadow.causes && (
        <DataTable
          label={`Why the hit rate of lane ${shadow.lane} is what it is`}
          caption="What became of the prompt tokens of the last minute."
          className={styles.table}
          stacks
          columns={CAUSE_COLUMNS}
          rows={shadow.causes}
          keyOf={({ kind }) => kind}
        />
      )}
      {shadow.work?.text && (
        <p className={styles.note}>
          {[shadow.work.text, shadow.work.remedy ?? ''].filter(Boolean).map(sentence).join(' ')}
        </p>
      )}
      {shadow.ttft && (
        <DataTable
          label={`Where the TTFT of lane ${shadow.lane} goes`}
          caption={`Parts of the mean TTFT of the last minute, ${ttftOf(shadow.ttft)}, by the engines’ own times.`}
          className={styles.table}
          stacks
          columns={TTFT_COLUMNS}
          rows={shadow.ttft}
          keyOf={({ name }) => name}
        />
      )}
      <DataTable
        label={`Other routers on lane ${shadow.lane} as a table`}
        caption={`${factsOf(shadow).join('; ')}.`}
        className={styles.table}
        stacks
        columns={columns}
        rows={toRows(shadow)}
        keyOf={({ key }) => key}
        rowClass={(row) => cx(row.word && styles.marked, isUnreliable(row) && styles.withheld)}
      />
      <ul className={styles.notes} aria-label={`Reliability of the figures of lane ${shadow.lane}`}>
        {[sourceWords(shadow), ...errorSentences(shadow)].map((words) => (
          <li key={words}>{words}</li>
        ))}
        <li>
          This covers cache hits and balance, not latency: different response times would have changed what came next.
        </li>
      </ul>
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  all: { ...COLUMN, gap: theme.spacing(1) },
  note: { margin: 0, maxWidth: '90ch', textWrap: 'pretty' },
  diagnoses: { margin: 0, paddingLeft: theme.spacing(3), maxWidth: '90ch', textWrap: 'pretty' },
  notes: {
    margin: 0,
    paddingLeft: theme.spacing(3),
    maxWidth: '110ch',
    textWrap: 'pretty',
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
  },
  table: { '& th': { minWidth: '16ch' } },
  // Secondary text has too little contrast on this background.
  marked: { ...markedRow(theme), '&&, && small': { color: theme.colors.text.primary } },
  withheld: { color: theme.colors.text.secondary, fontStyle: 'italic', filter: 'grayscale(1)' },
}));
