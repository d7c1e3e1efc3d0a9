import { useLayoutEffect, useRef } from 'react';
import { cx } from '@emotion/css';

import type { Showcase, ShowcaseSide, Twin } from '../../client';
import { DataTable } from '../../components/DataTable';
import { nameOfLane, SIDES, sideNames, type SideKey } from '../../components/Twin';
import { DASH, milliseconds, number } from '../../lib/format';
import type { Known } from '../../lib/known';
import { COLUMN, PROPORTIONAL, stylesOf, WRAP } from '../../lib/styles';
import { nameOf } from '../../lib/workers';
import { leader, progress, stateOf, tally } from './showcase';

interface ShowcaseViewProps {
  known: Record<SideKey, Known>;
  twin: Twin;
  showcase: Showcase;
  /** The large form, without the table, and without the names and the caution, which are above it. */
  bare?: boolean;
}

/** One conversation on both routers at once: the growing text of both sides, and which was first. */
export function ShowcaseView({ known, twin, showcase, bare }: ShowcaseViewProps) {
  const styles = useStyles();
  const names = sideNames(twin);
  return (
    <div className={styles.all}>
      <div className={styles.head}>
        <b>{showcase.topic}</b>
        <span role="status">{progress(showcase)}</span>
        <span>{tally(twin, showcase)}</span>
      </div>
      <blockquote className={styles.question}>{showcase.question}</blockquote>
      <div className={styles.leader} aria-live="polite">
        {leader(twin, showcase) ?? (showcase.state === 'running' ? 'Who is first?' : DASH)}
      </div>
      <div className={cx(styles.sides, bare && styles.fill)}>
        {SIDES.map((key) => (
          <Answer
            key={key}
            name={names[key]}
            side={showcase[key]}
            worker={nameOf(showcase[key].worker, known[key].lane.cluster.workers)}
            running={showcase.state === 'running'}
            bare={bare}
          />
        ))}
      </div>
      {!bare && showcase.results.length > 0 && <Results twin={twin} showcase={showcase} />}
    </div>
  );
}

interface AnswerProps {
  name: string;
  side: ShowcaseSide;
  /** The answering worker, where it is reported. */
  worker?: string;
  running: boolean;
  bare?: boolean;
}

function Answer({ name, side, worker, running, bare }: AnswerProps) {
  const styles = useStyles();
  const { text, ttft, latency, prompt_tokens, cached_tokens } = side;
  const end = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (end.current) {
      end.current.scrollTop = end.current.scrollHeight; // new text is at the end
    }
  }, [text]);
  return (
    <section className={styles.answer} aria-label={`Answer of ${name}`}>
      {!bare && <h3>{name}</h3>}
      <div className={styles.facts}>
        <span>{running || side.done || side.error ? stateOf(side) : 'Ended'}</span>
        <span>
          TTFT <b>{milliseconds(ttft)}</b>
        </span>
        {latency !== undefined && (
          <span>
            End-to-end latency <b>{milliseconds(latency)}</b>
          </span>
        )}
        {prompt_tokens !== undefined && (
          <span>
            Cached <b>{number(cached_tokens)}</b> of {number(prompt_tokens)} tokens
          </span>
        )}
        {worker && <span className={styles.worker}>{worker}</span>}
      </div>
      <div
        ref={end}
        className={cx(styles.text, text === '' && styles.empty)}
        tabIndex={0}
        role="group"
        aria-label={`Text of ${name}`}
      >
        {text || stateOf(side)}
      </div>
    </section>
  );
}

function Results({ twin, showcase: { results } }: { twin: Twin; showcase: Showcase }) {
  const styles = useStyles();
  const names = sideNames(twin);
  return (
    <DataTable
      label="Who was first, as a table"
      caption="Time to first token of the turns that have ended"
      className={styles.table}
      rows={results}
      keyOf={({ turn }) => turn}
      columns={[
        { name: 'Turn', cell: ({ turn }) => turn },
        { name: names.a, cell: ({ a }) => milliseconds(a) },
        { name: names.b, cell: ({ b }) => milliseconds(b) },
        {
          name: 'First',
          cell: ({ first, lead }) =>
            first ? `${nameOfLane(twin, first)}, by ${milliseconds(lead)}` : 'None: one failed',
        },
      ]}
    />
  );
}

const useStyles = stylesOf((theme) => ({
  all: { ...COLUMN, flex: '1 1 auto', gap: '0.6em', minHeight: 0, fontVariantNumeric: 'tabular-nums' },
  head: { ...WRAP, gap: '0.2em 1.4em', fontSize: '1.5em' },
  question: {
    margin: 0,
    padding: '0.3em 0.8em',
    borderLeft: `4px solid ${theme.colors.border.strong}`,
    fontSize: '1.5em',
    fontStyle: 'normal',
    textWrap: 'pretty',
  },
  leader: { fontSize: '2.4em', lineHeight: 1.2, fontWeight: theme.typography.fontWeightBold, ...PROPORTIONAL },
  sides: {
    display: 'grid',
    gridTemplateColumns: 'repeat(2, minmax(0, 1fr))',
    gridTemplateRows: 'auto auto 18em',
    flex: '1 1 auto',
    columnGap: '0.8em',
    minHeight: 0,
  },
  fill: {
    gridTemplateRows: 'auto minmax(3em, 1fr)',
    '@media (max-width: 600px)': { gridTemplateRows: 'auto minmax(18em, 1fr)' },
    '& > section': { gridRow: 'span 2' },
  },
  // Both texts begin at the same height, whatever the number of lines above.
  answer: {
    display: 'grid',
    gridRow: 'span 3',
    gridTemplateRows: 'subgrid',
    gridTemplateColumns: 'minmax(0, 1fr)',
    minWidth: 0,
    minHeight: 0,
    '& h3': { margin: 0, fontSize: '1.8em', overflowWrap: 'anywhere', ...PROPORTIONAL },
  },
  facts: {
    ...WRAP,
    alignContent: 'flex-start',
    gap: '0 1.2em',
    fontSize: '1.4em',
    color: theme.colors.text.secondary,
    '& b': { color: theme.colors.text.primary, fontWeight: theme.typography.fontWeightMedium },
  },
  worker: { overflowWrap: 'anywhere' },
  text: {
    // The layout sets the row's height, not the text.
    height: 0,
    minHeight: '100%',
    overflowY: 'auto',
    padding: '0.5em 0.8em',
    marginTop: '0.3em',
    borderRadius: '0.3em',
    background: theme.colors.background.secondary,
    fontSize: '1.5em',
    lineHeight: 1.4,
    whiteSpace: 'pre-wrap',
    overflowWrap: 'anywhere',
  },
  empty: { color: theme.colors.text.secondary, fontStyle: 'italic' },
  table: { width: 'auto', fontSize: '1.4em', '& th, & td': { padding: '0.3em 1em 0.3em 0' } },
}));
