import { memo } from 'react';
import { cx } from '@emotion/css';

import { Bar } from '../../components/Bar';
import { DataTable } from '../../components/DataTable';
import { DASH, number } from '../../lib/format';
import { stylesOf } from '../../lib/styles';
import {
  chosenOf,
  heldTokens,
  overlapWeight,
  requestOf,
  shortId,
  verdict,
  type Candidate,
  type Decision,
} from './routing';

/** One decision: every worker with the router's figures, and its cost with its numbers filled in. */
export const Detail = memo(function Detail({ decision }: { decision: Decision }) {
  const styles = useStyles();
  const { conversation, turn } = requestOf(decision);
  const chosen = chosenOf(decision);
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
      <DataTable
        label="The workers of this decision"
        caption={inferred ? 'Every worker, inferred from our model' : 'Every worker as seen by the router'}
        className={styles.table}
        rows={decision.candidates}
        keyOf={({ worker }) => worker}
        rowClass={(candidate) => cx(candidate === chosen && styles.chosen)}
        columns={[
          {
            name: 'Worker',
            cell: (candidate) => (
              <>
                {candidate.name}
                <small>{choiceWords(decision, candidate)}</small>
              </>
            ),
          },
          {
            name: 'Cached part of this prompt',
            cell: (candidate) => (
              <>
                <Bar share={heldTokens(decision, candidate) / decision.prompt_tokens} />
                {number(candidate.overlap_blocks)} blocks
              </>
            ),
          },
          {
            name: 'Load: decode blocks',
            cell: ({ decode_blocks, requests }) => (
              <>
                <Bar share={decode_blocks / scale.decode} muted />
                {number(decode_blocks)} <small>{number(requests)} requests</small>
              </>
            ),
          },
          {
            name: 'Cost, lowest wins',
            cell: (candidate) => (
              <>
                <Bar share={candidate.cost / scale.cost} strong={candidate === chosen} />
                {number(candidate.cost, 1)}
                <small className={styles.formula}>{filledIn(candidate, decision.block_tokens, weight)}</small>
              </>
            ),
          },
        ]}
      />
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
function choiceWords({ candidates, chosen, ours = -1 }: Decision, candidate: Candidate): string {
  if (candidate === candidates[chosen]) {
    return 'chosen';
  }
  return candidate === candidates[ours] ? 'our choice' : '';
}

/** The formula with a worker's numbers. */
function filledIn(c: Candidate, blockTokens: number, weight: number | undefined): string {
  return `${weight ?? DASH} × ${number(c.prefill_tokens)} / ${blockTokens} + ${number(c.decode_blocks)}`;
}

const useStyles = stylesOf((theme) => ({
  detail: { minWidth: 0, '& h3': { ...theme.typography.h5, fontSize: '1.15em', margin: 0 } },
  verdict: { fontSize: '1.15em', textWrap: 'pretty', minHeight: '2.8em', margin: 0 },
  table: {
    tableLayout: 'fixed',
    minWidth: 600,
    '& th': { fontWeight: theme.typography.fontWeightMedium, overflowWrap: 'anywhere' },
    '& small': { minHeight: '1.4em' },
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
