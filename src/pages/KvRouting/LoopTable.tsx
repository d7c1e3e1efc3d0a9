import { cx } from '@emotion/css';

import { stylesOf, wideDrawing } from '../../lib/styles';
import { Bar } from './Bar';
import { EXAMPLE, workOut, type ExampleRow } from './example';

/** The example's workers, with the figures known at each step. */
export function LoopTable({ step }: { step: number }) {
  const styles = useStyles();
  return (
    <div className={styles.scroll} tabIndex={0} role="group" aria-label="The example as a table">
      <table className={styles.table}>
        <caption className={styles.caption}>
          Example: {EXAMPLE.blocks} blocks, overlap weight {EXAMPLE.weight}
        </caption>
        <thead>
          <tr>
            <th scope="col">Worker</th>
            <th scope="col">Cached</th>
            <th scope="col">To prefill</th>
            <th scope="col">Decoding</th>
            <th scope="col">Cost</th>
          </tr>
        </thead>
        <tbody>
          {workOut().map((row) => (
            <Row key={row.name} row={row} step={step} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The figures of a worker by each step. */
function Row({ row, step }: { row: ExampleRow; step: number }) {
  const styles = useStyles();
  const chosen = step === 3 && row.chosen;
  return (
    <tr className={cx(chosen && styles.chosen)}>
      <th scope="row">
        {row.name} {chosen && <b>chosen</b>}
      </th>
      <td>
        {step === 0 && `publishes ${row.cached} stored`}
        {step >= 1 && <Bar share={row.cached / EXAMPLE.blocks} />}
        {step >= 1 && row.cached}
      </td>
      <td>{step >= 2 && row.prefill}</td>
      <td>{step >= 2 && row.decode}</td>
      <td>{step >= 2 && `${EXAMPLE.weight} × ${row.prefill} + ${row.decode} = ${row.cost}`}</td>
    </tr>
  );
}

const useStyles = stylesOf((theme) => ({
  scroll: wideDrawing,
  caption: { captionSide: 'top', padding: 0, color: theme.colors.text.secondary },
  table: {
    width: '100%',
    minWidth: 560,
    tableLayout: 'fixed',
    fontVariantNumeric: 'tabular-nums',
    '& th, & td': { height: 48, padding: theme.spacing(0.5, 1), borderBottom: `1px solid ${theme.colors.border.weak}` },
    '& th': { fontWeight: theme.typography.fontWeightMedium },
    '& tr': { '@media (prefers-reduced-motion: no-preference)': { transition: 'background 400ms' } },
  },
  chosen: {
    background: theme.colors.action.selected,
    boxShadow: `inset 3px 0 0 ${theme.colors.primary.main}`,
  },
}));
