import { cx } from '@emotion/css';

import { useTwin, type PairedMetric, type Twin } from '../../client';
import { number } from '../../lib/format';
import { COLUMN, stylesOf, verdicts } from '../../lib/styles';
import { sentence } from '../../lib/text';
import { DataTable, type Column } from '../DataTable';
import { Loading, LoadProblem } from '../Loading';
import { Caution } from './Caution';
import {
  differenceWords,
  evidences,
  intervalWords,
  pairedName,
  pairedValue,
  sideNames,
  standing,
  type SideKey,
} from './model';

interface PairsProps {
  twin: Twin;
  /** Omits the caution, where the screen shows it above. */
  bare?: boolean;
}

/** Both lanes paired by conversation and turn: each difference with its interval, and the benefit of pairing. */
export function Pairs({ twin, bare }: PairsProps) {
  const styles = useStyles();
  const names = sideNames(twin);
  const { pairs, unpaired, metrics, evidence, caution } = twin;
  const side = (key: SideKey): Column<PairedMetric> => ({
    name: names[key],
    cell: (paired) => (
      <span className={cx(standing(paired) === key && styles.better)}>{pairedValue(paired.metric, paired[key])}</span>
    ),
  });
  return (
    <div className={styles.all}>
      {!bare && <Caution twin={twin} />}
      {pairs === 0 ? (
        <p role="status">{waiting(twin)}</p>
      ) : (
        <DataTable
          label="Paired differences as a table"
          caption={`${pairsText(pairs)} of turns that succeeded on both; ${number(unpaired)} unpaired`}
          className={styles.table}
          stacks
          rows={metrics}
          keyOf={({ metric }) => metric}
          columns={[
            {
              name: 'Metric',
              cell: ({ metric, n }) => (
                <>
                  {pairedName(metric)} <small>{pairsText(n)}</small>
                </>
              ),
            },
            side('a'),
            side('b'),
            {
              name: 'Difference',
              className: styles.words,
              isWide: true,
              isUnnamed: true,
              cell: (paired) => differenceWords(paired, names),
            },
            { name: '95 % interval', cell: intervalWords },
          ]}
        />
      )}
      {!caution && <p className={styles.note}>{evidences[evidence]}</p>}
    </div>
  );
}

function pairsText(n: number): string {
  return `${number(n)} ${n === 1 ? 'pair' : 'pairs'}`;
}

/** Explains why there are no pairs so far. */
function waiting({ since }: Twin): string {
  return since === undefined
    ? 'Settling: pairs count once both lanes have settled with the current settings.'
    : 'No turn has succeeded on both lanes yet.';
}

/** The comparison of two lanes turn by turn. With one lane, it explains how to get a second one. */
export function PairsOfLanes() {
  const { value, problem } = useTwin(true);
  if (problem?.status === 404) {
    return <p>{sentence(problem.message.replace(/^not found: /, ''))}</p>;
  }
  return (
    <>
      <LoadProblem what="comparison" problem={problem} />
      {!value && !problem && <Loading text="Loading both lanes…" />}
      {value && !problem && <Pairs twin={value} />}
    </>
  );
}

const useStyles = stylesOf((theme) => ({
  all: { ...COLUMN, gap: theme.spacing(1), '& p': { margin: 0 } },
  table: {
    '& td': { minWidth: '9ch' },
  },
  better: verdicts(theme).better,
  words: { minWidth: '22ch', textWrap: 'pretty' },
  note: { color: theme.colors.text.secondary, maxWidth: '90ch', textWrap: 'pretty' },
}));
