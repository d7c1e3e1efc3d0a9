import { cx } from '@emotion/css';

import type { PairedMetric, Twin } from '../../client';
import { number } from '../../lib/format';
import { stylesOf, verdicts } from '../../lib/styles';
import { DataTable } from '../DataTable';
import { Caution } from './Caution';
import {
  differenceWords,
  evidences,
  intervalWords,
  pairedName,
  pairedValue,
  pairingWords,
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
        >
          <thead>
            <tr>
              <th scope="col">Metric</th>
              <th scope="col">{names.a}</th>
              <th scope="col">{names.b}</th>
              <th scope="col">Difference</th>
              <th scope="col">95 % interval</th>
              <th scope="col">Pairing</th>
            </tr>
          </thead>
          <tbody>
            {metrics.map((paired) => (
              <Row key={paired.metric} paired={paired} names={names} />
            ))}
          </tbody>
        </DataTable>
      )}
      {pairs > 0 && (
        <p className={styles.note}>
          Each interval is valid for a single look: with repeated looks, some apparent differences will be due to
          chance.
        </p>
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

interface RowProps {
  paired: PairedMetric;
  names: Record<SideKey, string>;
}

function Row({ paired, names }: RowProps) {
  const styles = useStyles();
  const { metric, a, b, n } = paired;
  const better = standing(paired);
  return (
    <tr>
      <th scope="row">
        {pairedName(metric)} <small>{pairsText(n)}</small>
      </th>
      <td className={cx(better === 'a' && styles.better)} data-column={names.a}>
        {pairedValue(metric, a)}
      </td>
      <td className={cx(better === 'b' && styles.better)} data-column={names.b}>
        {pairedValue(metric, b)}
      </td>
      <td className={styles.words} data-wide>
        {differenceWords(paired, names)}
      </td>
      <td data-column="95 % interval">{intervalWords(paired)}</td>
      <td className={styles.words} data-column="Pairing">
        {pairingWords(paired)}
      </td>
    </tr>
  );
}

const useStyles = stylesOf((theme) => ({
  all: { display: 'flex', flexDirection: 'column', gap: theme.spacing(1), '& p': { margin: 0 } },
  table: {
    '& td': { minWidth: '9ch' },
  },
  better: verdicts(theme).better,
  words: { minWidth: '22ch', textWrap: 'pretty' },
  note: { color: theme.colors.text.secondary, maxWidth: '90ch', textWrap: 'pretty' },
}));
