import type { ModeState, TrialState } from '../../client';
import { number, PERCENT } from '../../lib/format';
import { stylesOf } from '../../lib/styles';
import { Chart } from '../Chart';
import { differenceText, isShare, metricName } from './metrics';

interface LooksProps {
  trial: TrialState;
  /** The mode of the arm that is compared. */
  mode: ModeState;
}

/** The course of the deciding interval, look by look. It renders nothing before there are two. */
export function Looks({ trial: { method, looks, boundaries, primary }, mode: { mode } }: LooksProps) {
  const styles = useStyles();
  if (looks.length < 2 || !primary) {
    return null;
  }
  const { metric } = primary;
  const [low, high] = rangeOf(looks, boundaries);
  const unit = method === 'pairs' ? 'pair' : 'block';
  const last = baseOf(looks[looks.length - 1]);
  return (
    <figure className={styles.looks}>
      <figcaption>
        {metricName(metric)}, {unit} by {unit}
      </figcaption>
      <div className={styles.curve}>
        <Chart
          label={
            `The difference in ${metricName(metric)} and its interval after up to ${number(last)} ` +
            `${unit}s of spans; figures in the report`
          }
          x={{ levels: looks.map(baseOf), unit: `${unit}s` }}
          y={{ min: low, max: high, ticks: [low, 0, high].map((at) => ({ at, text: differenceText(metric, at) })) }}
          field={boundaries}
          format={isShare(metric) ? { ...PERCENT, unit: undefined } : PERCENT}
          lines={[
            {
              key: 'difference',
              name: 'difference',
              tone: mode,
              dots: true,
              points: looks.map((look) => [baseOf(look), look.difference]),
            },
          ]}
          bands={[
            {
              of: 'difference',
              tone: mode,
              points: looks.flatMap((look): Array<[number, number, number]> =>
                look.interval ? [[baseOf(look), ...look.interval]] : []
              ),
            },
          ]}
        />
      </div>
    </figure>
  );
}

/** Returns the size of a look's sample, in blocks, or in pairs in trials of earlier versions. */
function baseOf({ blocks, pairs }: TrialState['looks'][number]): number {
  return blocks ?? pairs ?? 0;
}

/**
 * Returns the range of the axis: all differences, the boundaries and the last interval. Earlier intervals may be many
 * times as wide, and are cut at twice that range, as in the report's chart.
 */
export function rangeOf(looks: TrialState['looks'], boundaries: [number, number]): [low: number, high: number] {
  const must = [0, ...boundaries, ...looks.map(({ difference }) => difference), ...(looks.at(-1)?.interval ?? [])];
  const may = [0, ...looks.flatMap(({ interval = [] }) => interval)];
  const [low, high] = [Math.min(...must), Math.max(...must)];
  const room = high - low;
  return [
    Math.min(low, Math.max(Math.min(...may), low - room)),
    Math.max(high, Math.min(Math.max(...may), high + room)),
  ];
}

const useStyles = stylesOf((theme) => ({
  looks: {
    margin: 0,
    maxWidth: 640,
    breakInside: 'avoid',
    '& figcaption': { color: theme.colors.text.secondary },
  },
  curve: { height: 190, fontSize: theme.typography.bodySmall.fontSize },
}));
