import { memo } from 'react';
import { cx } from '@emotion/css';

import { DASH, number } from '../../lib/format';
import { stylesOf, wideDrawing } from '../../lib/styles';
import { Bar } from './Bar';
import { heldTokens, overlapWeight, requestOf, shortId, verdict, type Candidate, type Decision } from './routing';

/** One decision: every worker with the router's figures, and its cost with its numbers filled in. */
export const Detail = memo(function Detail({ decision }: { decision: Decision }) {
  const styles = useStyles();
  const { conversation, turn } = requestOf(decision);
  const weight = overlapWeight(decision);
  const inferred = decision.ours !== undefined;
  const most = (of: (c: Candidate) => number) => Math.max(1, ...decision.candidates.map(of));
  const scale = { decode: most((c) => c.decode_blocks), cost: most((c) => c.cost) };
  return (
    <div className={styles.detail}>
      <h3>
        Conversation {shortId(conversation)}, turn {turn}: {number(decision.prompt_tokens)} prompt tokens
      </h3>
      <p className={styles.verdict}>{verdict(decision)}</p>
      <div className={styles.scroll} tabIndex={0} role="group" aria-label="The workers of this decision">
        <table className={styles.table}>
          <caption className={styles.caption}>
            {inferred ? 'Every worker, inferred from our model' : 'Every worker as seen by the router'}
          </caption>
          <thead>
            <tr>
              <th scope="col">Worker</th>
              <th scope="col">Cached part of this prompt</th>
              <th scope="col">Load: decode blocks</th>
              <th scope="col">Cost, lowest wins</th>
            </tr>
          </thead>
          <tbody>
            {decision.candidates.map((c, i) => (
              <tr key={c.worker} className={cx(i === decision.chosen && styles.chosen)}>
                <th scope="row">
                  {c.name}
                  <small>{choiceWords(decision, i)}</small>
                </th>
                <td>
                  <Bar share={heldTokens(decision, c) / decision.prompt_tokens} />
                  {number(c.overlap_blocks)} blocks
                </td>
                <td>
                  <Bar share={c.decode_blocks / scale.decode} muted />
                  {number(c.decode_blocks)} <small>{number(c.requests)} requests</small>
                </td>
                <td>
                  <Bar share={c.cost / scale.cost} strong={i === decision.chosen} />
                  {number(c.cost, 1)}
                  <small className={styles.formula}>{filledIn(c, decision.block_tokens, weight)}</small>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p className={styles.note}>
        <b>cost = overlap weight × prefill tokens / block tokens + decode blocks.</b> A block is{' '}
        {number(decision.block_tokens)} tokens. Prefill tokens are the uncached tokens of this prompt plus the prompts
        that the worker has not finished yet.{' '}
        {inferred ? (
          'All values are inferred: the router does not report its costs. The overlap weight is ' +
          'the default of Dynamo’s router.'
        ) : (
          <>
            {weight === undefined
              ? 'The overlap weight is unknown: the API does not report it, and these costs do not imply it.'
              : `The overlap weight, ${weight}, is derived from the costs; the API does not report it.`}
          </>
        )}
      </p>
    </div>
  );
});

/** Labels who chose a worker: the router, or our account where it would have chosen otherwise. */
function choiceWords({ chosen, ours }: Decision, i: number): string {
  if (i === chosen) {
    return 'chosen';
  }
  return i === ours ? 'our choice' : '';
}

/** The formula with a worker's numbers. */
function filledIn(c: Candidate, blockTokens: number, weight: number | undefined): string {
  return `${weight ?? DASH} × ${number(c.prefill_tokens)} / ${blockTokens} + ${number(c.decode_blocks)}`;
}

const useStyles = stylesOf((theme) => ({
  detail: { minWidth: 0, '& h3': { ...theme.typography.h5, fontSize: '1.15em', margin: 0 } },
  verdict: { fontSize: '1.15em', textWrap: 'pretty', minHeight: '2.8em', margin: 0 },
  scroll: wideDrawing,
  caption: { captionSide: 'top', padding: 0, color: theme.colors.text.secondary },
  table: {
    width: '100%',
    tableLayout: 'fixed',
    minWidth: 600,
    fontVariantNumeric: 'tabular-nums',
    '& th, & td': {
      padding: theme.spacing(0.5, 1),
      verticalAlign: 'top',
      borderBottom: `1px solid ${theme.colors.border.weak}`,
    },
    '& th': { fontWeight: theme.typography.fontWeightMedium, overflowWrap: 'anywhere' },
    '& thead th': { color: theme.colors.text.secondary },
    '& small': { display: 'block', minHeight: '1.4em', color: theme.colors.text.secondary },
  },
  chosen: {
    '&& small': { color: theme.colors.text.primary },
    background: theme.colors.action.selected,
    boxShadow: `inset 3px 0 0 ${theme.colors.primary.main}`,
  },
  formula: { whiteSpace: 'nowrap' },
  note: {
    margin: theme.spacing(1, 0, 0),
    color: theme.colors.text.secondary,
    textWrap: 'pretty',
    '& b': { color: theme.colors.text.primary, fontWeight: theme.typography.fontWeightMedium },
  },
}));
