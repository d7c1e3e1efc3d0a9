import { memo } from 'react';

import type { SimulationResult } from '../../client';
import { digits, PERCENT, type Format } from '../../lib/format';
import { stylesOf } from '../../lib/styles';
import { Breakdown, sidesOf } from './Breakdown';
import { LevelTable } from './LevelTable';
import { modesOf } from './series';

const causes = [
  { key: 'largest_queue_seconds', name: 'Longest wait at a worker, s', format: { decimals: 2 } },
  { key: 'inflight_skew', name: 'Requests in flight, busiest over mean', format: { decimals: 2 } },
  { key: 'herding_share', name: 'First turns sent to the busiest worker, %', format: PERCENT },
  { key: 'prefilled_twice_share', name: 'Prompt tokens recomputed, %', format: PERCENT },
] as const satisfies Array<{ key: string; name: string; format: Format }>;

/** Why the modes differ: the parts of a turn's time, in the load generator's sentences, and in figures by level. */
export const Why = memo(function Why({ result }: { result: SimulationResult }) {
  const styles = useStyles();
  const { explanation, points, request, progress } = result;
  const modes = modesOf(result);
  return (
    <>
      <Breakdown result={result} modes={modes} levels={modes.length > 1 ? sidesOf(result, modes) : []} />
      {explanation.length > 0 ? (
        <ul className={styles.words}>
          {explanation.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      ) : (
        <p>
          {progress.state === 'done'
            ? 'There is nothing to explain in these figures.'
            : 'The explanation appears once all runs are done.'}
        </p>
      )}
      <LevelTable
        caption="Queues and caches under each mode, level by level, simulated"
        columns={causes.map(({ key, name, format }) => ({
          name,
          cell: (mode, level) => {
            const point = points.find((one) => one.concurrency === level && one.mode === mode);
            return digits(point?.figures[key]?.mean, format);
          },
        }))}
        modes={modes}
        levels={request.levels ?? []}
      />
    </>
  );
});

const useStyles = stylesOf((theme) => ({
  words: {
    maxWidth: '90ch',
    margin: theme.spacing(0, 0, 1.5),
    paddingLeft: theme.spacing(2.5),
    textWrap: 'pretty',
    '& li': { marginBottom: theme.spacing(0.5) },
  },
}));
