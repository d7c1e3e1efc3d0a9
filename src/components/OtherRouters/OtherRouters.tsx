import { cx } from '@emotion/css';

import { Alert } from '@grafana/ui';

import { readShadow, useClient, useLive, usePolled, type Shadow } from '../../client';
import { number, percent } from '../../lib/format';
import { markedRow, stylesOf } from '../../lib/styles';
import { DataTable } from '../DataTable';
import { Loading } from '../Loading';
import {
  errorSentences,
  factsOf,
  sentence,
  settlingWords,
  sourceWords,
  tokens,
  toRows,
  type Row as RowModel,
} from './model';

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
      {problem && (
        <Alert severity="warning" title="The figures of other routers could not be loaded" bottomSpacing={1}>
          {problem.message}
        </Alert>
      )}
      {!value && !problem && <Loading text="Loading other routers…" />}
      {value && <ShadowView shadow={value} />}
    </>
  );
}

/** The current account. */
function ShadowView({ shadow }: { shadow: Shadow }) {
  const styles = useStyles();
  const { source, message, withheld, diagnoses } = shadow;
  if (source === 'none') {
    return <p className={styles.note}>{sentence(message ?? 'no other routers are computed for this lane')}</p>;
  }
  const settling = settlingWords(shadow);
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
      <DataTable
        label={`Other routers on lane ${shadow.lane} as a table`}
        caption={`${factsOf(shadow).join('; ')}.`}
        className={styles.table}
        stacks
      >
        <thead>
          <tr>
            <th scope="col">Routing policy</th>
            <th scope="col">{columns.hits}</th>
            <th scope="col">{columns.prefill}</th>
            <th scope="col">{columns.spread}</th>
          </tr>
        </thead>
        <tbody>
          {toRows(shadow).map((row) => (
            <Row key={row.key} row={row} withheld={Boolean(withheld)} />
          ))}
        </tbody>
      </DataTable>
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

/** The headings of the columns of figures. */
const columns = { hits: 'KV hit rate', prefill: 'Tokens to prefill', spread: 'Spread of requests in flight' };

interface RowProps {
  row: RowModel;
  withheld: boolean;
}

function Row({ row: { title, word, figures, accounted }, withheld }: RowProps) {
  const styles = useStyles();
  const { hit_ratio, prefill_tokens, inflight_spread } = figures;
  return (
    <tr className={cx(word && styles.marked, withheld && accounted && styles.withheld)}>
      <th scope="row">
        {title} {word && <small>{word}</small>}
        {withheld && accounted && <small>unreliable</small>}
      </th>
      <td data-column={columns.hits} data-wide>
        {percent(hit_ratio)}
        <span className={styles.track} aria-hidden="true">
          <span className={styles.bar} style={{ width: `${100 * Math.min(1, Math.max(0, hit_ratio ?? 0))}%` }} />
        </span>
      </td>
      <td data-column={columns.prefill}>{tokens(prefill_tokens)}</td>
      <td data-column={columns.spread}>{number(inflight_spread, 1)}</td>
    </tr>
  );
}

const useStyles = stylesOf((theme) => ({
  all: { display: 'flex', flexDirection: 'column', gap: theme.spacing(1) },
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
  track: {
    display: 'block',
    width: '100%',
    minWidth: '8ch',
    height: 6,
    margin: theme.spacing(0.5, 0),
    borderRadius: theme.shape.radius.default,
    background: theme.colors.background.secondary,
  },
  bar: { display: 'block', height: '100%', borderRadius: 'inherit', background: theme.colors.primary.main },
}));
