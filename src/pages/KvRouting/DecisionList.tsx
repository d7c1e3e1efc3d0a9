import { cx } from '@emotion/css';

import { DataTable, type Column } from '../../components/DataTable';
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
  const ofChosen = (words: (decision: Decision, chosen: Candidate) => string) => (decision: Decision) => {
    const chosen = chosenOf(decision);
    return chosen ? words(decision, chosen) : DASH;
  };
  const columns: Array<Column<Decision>> = [
    {
      name: 'Conversation',
      cell: (decision) => {
        const { conversation, turn } = requestOf(decision);
        return (
          <button
            type="button"
            className={styles.button}
            aria-pressed={selected === keyOf(decision)}
            onClick={() => onPin(decision)}
          >
            {shortId(conversation)}, turn {turn}
          </button>
        );
      },
    },
    { name: 'Went to', cell: ofChosen((_, { name }) => name) },
    {
      name: 'Cached',
      cell: ofChosen(
        (decision, chosen) => `${number(heldTokens(decision, chosen))} of ${number(decision.prompt_tokens)}`
      ),
    },
    { name: 'To compute', cell: ofChosen((decision, chosen) => number(toCompute(decision, chosen))) },
  ];
  const alternative: Column<Decision> = {
    name: `${instead} (est.)`,
    cell: (decision) => {
      const other = alternativeWorker(decision, dealt);
      return (
        <>
          {other ? number(toCompute(decision, other)) : DASH} <small>{other?.name}</small>
        </>
      );
    },
  };
  return (
    <DataTable
      label="The latest decisions as a table"
      caption={`The last ${Math.min(SHOWN, decisions.length)} decisions, newest first`}
      className={styles.table}
      columns={instead ? [...columns, alternative] : columns}
      rows={decisions.slice(0, SHOWN)}
      keyOf={keyOf}
      rowClass={(decision) => cx(selected === keyOf(decision) && styles.selected)}
    />
  );
}

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
