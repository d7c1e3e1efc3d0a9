import type { TrialArm, TrialPair, TrialPlace, TrialRanking } from '../../client';
import { number } from '../../lib/format';
import { modeText } from '../../lib/names';
import { stylesOf, verdicts } from '../../lib/styles';
import { differenceText, isShare, metricName, metricValue, rangeText } from './metrics';
import { useTableStyles } from './table';

interface RankingProps {
  ranking: TrialRanking;
  /** The metric that decides. */
  metric: string;
  /** The smallest difference of interest. */
  smallest: number;
  /** Whether the trial has ended. */
  isOver: boolean;
}

/** The places of a trial's arms, every pair of them, and the arms that are not different. */
export function Ranking({ ranking, metric, smallest, isOver }: RankingProps) {
  const styles = useTableStyles();
  const notes = useStyles();
  const { places, pairs, groups } = ranking;
  const names = new Map<TrialArm, string>(places.map(({ arm, mode }) => [arm, modeText(mode)]));
  const nameOf = (arm: TrialArm) => names.get(arm) ?? arm;
  return (
    <>
      <h3>Ranking by {metricName(metric)}</h3>
      <div className={styles.container} tabIndex={0} role="group" aria-label="Ranking">
        <table className={styles.table} aria-label="Ranking">
          <thead>
            <tr>
              <th scope="col">Place</th>
              <th scope="col">Arm</th>
              <th scope="col" className={styles.figure}>
                {metricName(metric)}
              </th>
              <th scope="col">May be the best</th>
              <th scope="col">Took part</th>
              <th scope="col" className={styles.figure}>
                Failed turns
              </th>
            </tr>
          </thead>
          <tbody>
            {places.map((place) => (
              <Place key={place.arm} place={place} metric={metric} isOver={isOver} />
            ))}
          </tbody>
        </table>
      </div>
      {groups.map(({ arms }) => (
        <p key={arms.join()} className={notes.note}>
          {listText(arms.map(nameOf))} are not different: less than {number(100 * smallest, 1)}{' '}
          {isShare(metric) ? 'points' : '%'}.
        </p>
      ))}
      {pairs.length > 0 && (
        <>
          <h3>Every pair</h3>
          <div className={styles.container} tabIndex={0} role="group" aria-label="Every pair">
            <table className={styles.table} aria-label="Every pair">
              <thead>
                <tr>
                  <th scope="col">Arm</th>
                  <th scope="col">Compared with</th>
                  <th scope="col" className={styles.figure}>
                    Difference
                  </th>
                  <th scope="col" className={styles.figure}>
                    95 % interval
                  </th>
                  <th scope="col" className={styles.figure}>
                    Blocks
                  </th>
                  <th scope="col">Conclusion</th>
                </tr>
              </thead>
              <tbody>
                {pairs.map((pair) => (
                  <Pair key={pair.a + pair.b} pair={pair} nameOf={nameOf} />
                ))}
              </tbody>
            </table>
          </div>
          <p className={notes.note}>
            The intervals hold for all pairs and looks together, each by the last look at which both arms took part.
          </p>
        </>
      )}
    </>
  );
}

function Place({ place, metric, isOver }: { place: TrialPlace; metric: string; isOver: boolean }) {
  const styles = useTableStyles();
  const { mode, place: range, mean, may_be_best: may, left_after: left, failures } = place;
  const stays = isOver ? 'to the end' : 'takes part';
  return (
    <tr>
      <td>{range[0] === range[1] ? number(range[0]) : `${number(range[0])} to ${number(range[1])}`}</td>
      <th scope="row">{modeText(mode)}</th>
      <td className={styles.figure}>{mean === undefined ? '' : metricValue(metric, mean)}</td>
      <td>{may ? 'yes' : 'no'}</td>
      <td className={styles.word}>{left === undefined ? stays : `${number(left)} blocks`}</td>
      <td className={styles.figure}>
        {number(failures.failed)} of {number(failures.ended)}
      </td>
    </tr>
  );
}

function Pair({ pair, nameOf }: { pair: TrialPair; nameOf(arm: TrialArm): string }) {
  const styles = useTableStyles();
  const tones = useStyles();
  const { a, b, blocks, more, primary } = pair;
  const { metric, difference, interval, outcome } = primary;
  const words = {
    running: 'not decided',
    no_difference: 'no difference of interest',
    a_better: `${nameOf(a)} better`,
    b_better: `${nameOf(b)} better`,
  }[outcome];
  const isShown = outcome === 'a_better' || outcome === 'b_better';
  return (
    <tr>
      <th scope="row">{nameOf(b)}</th>
      <td>{nameOf(a)}</td>
      <td className={styles.figure}>{differenceText(metric, difference)}</td>
      <td className={styles.figure}>{interval ? rangeText(metric, interval) : 'not bounded yet'}</td>
      <td className={styles.figure}>{number(blocks)}</td>
      <td className={isShown ? tones.better : tones.same}>
        {words}
        {more && `, ${nameOf(more)} fails more turns`}
      </td>
    </tr>
  );
}

/** Lists names: "a, b and c". */
function listText(all: string[]): string {
  return all.length < 2 ? all.join() : `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`;
}

const useStyles = stylesOf((theme) => ({
  note: { ...theme.typography.bodySmall, margin: 0, color: theme.colors.text.secondary, textWrap: 'pretty' },
  ...verdicts(theme),
}));
