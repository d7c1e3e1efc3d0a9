import type { TrialArm, TrialPair, TrialRanking } from '../../client';
import { number } from '../../lib/format';
import { modeText } from '../../lib/names';
import { DataTable } from '../DataTable';
import { differenceText, isShare, metricName, metricValue, outcomeWords, rangeText } from './metrics';
import { useTableStyles } from './table';

interface RankingProps {
  ranking: TrialRanking;
  /** The metric that decides. */
  metric: string;
  /** The smallest difference of interest. */
  smallest: number;
  isOver: boolean;
}

/** The places of a trial's arms, every pair of them, and the arms that are not different. */
export function Ranking({ ranking, metric, smallest, isOver }: RankingProps) {
  const styles = useTableStyles();
  const { places, pairs, groups } = ranking;
  const names = new Map<TrialArm, string>(places.map(({ arm, mode }) => [arm, modeText(mode)]));
  const nameOf = (arm: TrialArm) => names.get(arm) ?? arm;
  return (
    <>
      <h3>Ranking by {metricName(metric)}</h3>
      <DataTable
        label="Ranking"
        className={styles.table}
        rows={places}
        keyOf={({ arm }) => arm}
        columns={[
          {
            name: 'Place',
            cell: ({ place: [from, to] }) => (from === to ? number(from) : `${number(from)} to ${number(to)}`),
          },
          { name: 'Arm', cell: ({ mode }) => modeText(mode), isHead: true },
          {
            name: metricName(metric),
            className: styles.figure,
            cell: ({ mean }) => mean !== undefined && metricValue(metric, mean),
          },
          { name: 'May be the best', cell: ({ may_be_best }) => (may_be_best ? 'yes' : 'no') },
          {
            name: 'Took part',
            className: styles.word,
            cell: ({ left_after: left, gone }) =>
              left === undefined
                ? isOver
                  ? 'to the end'
                  : 'takes part'
                : `${number(left)} blocks${gone ? ', then did not serve' : ''}`,
          },
          {
            name: 'Failed turns',
            className: styles.figure,
            cell: ({ failures: { failed, ended } }) => `${number(failed)} of ${number(ended)}`,
          },
        ]}
      />
      {groups.map(({ arms }) => (
        <p key={arms.join()} className={styles.note}>
          {listText(arms.map(nameOf))} are not different: less than {number(100 * smallest, 1)}{' '}
          {isShare(metric) ? 'points' : '%'}.
        </p>
      ))}
      {pairs.length > 0 && (
        <>
          <h3>Every pair</h3>
          <DataTable
            label="Every pair"
            className={styles.table}
            rows={pairs}
            keyOf={({ a, b }) => a + b}
            columns={[
              { name: 'Arm', cell: ({ b }) => nameOf(b) },
              { name: 'Compared with', cell: ({ a }) => nameOf(a) },
              {
                name: 'Difference',
                className: styles.figure,
                cell: ({ primary }) => differenceText(primary.metric, primary.difference),
              },
              {
                name: '95 % interval',
                className: styles.figure,
                cell: ({ primary }) =>
                  primary.interval ? rangeText(primary.metric, primary.interval) : 'not bounded yet',
              },
              { name: 'Blocks', className: styles.figure, cell: ({ blocks }) => number(blocks) },
              { name: 'Conclusion', cell: (pair) => <Conclusion pair={pair} nameOf={nameOf} /> },
            ]}
          />
          <p className={styles.note}>
            The intervals hold for all pairs and looks together, each by the last look at which both arms took part.
          </p>
        </>
      )}
    </>
  );
}

function Conclusion({ pair: { a, b, more, primary }, nameOf }: { pair: TrialPair; nameOf(arm: TrialArm): string }) {
  const styles = useTableStyles();
  const words = outcomeWords(primary.outcome, nameOf(a), nameOf(b));
  const isDecided = primary.outcome === 'a_better' || primary.outcome === 'b_better';
  return (
    <span className={isDecided ? styles.better : styles.same}>
      {words}
      {more && `, ${nameOf(more)} fails more turns`}
    </span>
  );
}

/** Lists names: "a, b and c". */
function listText(all: string[]): string {
  return all.length < 2 ? all.join() : `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`;
}
