import { memo } from 'react';
import { cx } from '@emotion/css';

import { DataTable } from '../../components/DataTable';
import { DASH, number } from '../../lib/format';
import { markedRow, stylesOf } from '../../lib/styles';
import {
  chosenOf,
  heldTokens,
  alternativeWorker,
  keyOf,
  requestOf,
  shortId,
  toCompute,
  type Candidate,
  type Assignments,
  type Decision,
} from './routing';

/** The number of decisions listed; the others count in the sums. */
const SHOWN = 10;

interface DecisionListProps {
  decisions: Decision[];
  dealt: Assignments;
  /** The heading of the counterfactual column; without one, it is not shown. */
  instead?: string;
  selected?: string;
  onPin(decision: Decision): void;
}

/** Latest decisions, newest first. Choosing one pins it. */
export function DecisionList({ decisions, dealt, instead, selected, onPin }: DecisionListProps) {
  const styles = useStyles();
  return (
    <DataTable
      label="The latest decisions as a table"
      caption={`The last ${Math.min(SHOWN, decisions.length)} decisions, newest first`}
      className={styles.table}
    >
      <thead>
        <tr>
          <th scope="col">Conversation</th>
          <th scope="col">Went to</th>
          <th scope="col">Cached</th>
          <th scope="col">To compute</th>
          {instead && <th scope="col">{instead} (est.)</th>}
        </tr>
      </thead>
      <tbody>
        {decisions.slice(0, SHOWN).map((decision) => (
          <Row
            key={keyOf(decision)}
            decision={decision}
            instead={instead ? alternativeWorker(decision, dealt) : undefined}
            compare={instead !== undefined}
            selected={selected === keyOf(decision)}
            onPin={onPin}
          />
        ))}
      </tbody>
    </DataTable>
  );
}

interface RowProps {
  decision: Decision;
  /** Whether it shows the worker that the other mode would have chosen, which is `instead`. */
  compare: boolean;
  instead?: Candidate;
  selected: boolean;
  onPin(decision: Decision): void;
}

const Row = memo(function Row({ decision, compare, instead, selected, onPin }: RowProps) {
  const styles = useStyles();
  const { conversation, turn } = requestOf(decision);
  const chosen = chosenOf(decision);
  return (
    <tr className={cx(selected && styles.selected)}>
      <th scope="row">
        <button type="button" className={styles.button} aria-pressed={selected} onClick={() => onPin(decision)}>
          {shortId(conversation)}, turn {turn}
        </button>
      </th>
      <td>{chosen?.name ?? DASH}</td>
      <td>{chosen ? `${number(heldTokens(decision, chosen))} of ${number(decision.prompt_tokens)}` : DASH}</td>
      <td>{chosen ? number(toCompute(decision, chosen)) : DASH}</td>
      {compare && (
        <td>
          {instead ? number(toCompute(decision, instead)) : DASH} <small>{instead?.name}</small>
        </td>
      )}
    </tr>
  );
});

const useStyles = stylesOf((theme) => ({
  table: {
    '& th, & td': { whiteSpace: 'nowrap' },
    '& :is(th, td):nth-child(n + 3)': { textAlign: 'right' },
    '& thead th': { whiteSpace: 'normal', verticalAlign: 'bottom' },
    '& small': { color: theme.colors.text.primary },
  },
  selected: [
    markedRow(theme),
    {
      '&& > :first-child': { boxShadow: `inset 3px 0 0 ${theme.colors.primary.main}` },
    },
  ],
  button: {
    padding: 0,
    font: 'inherit',
    border: 'none',
    background: 'none',
    color: theme.colors.text.link,
    textAlign: 'left',
    '&:hover': { textDecoration: 'underline' },
    '&:focus-visible': { outline: `2px solid ${theme.colors.primary.main}`, outlineOffset: 2 },
  },
}));
