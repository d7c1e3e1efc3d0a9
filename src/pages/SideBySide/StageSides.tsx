import { cx } from '@emotion/css';

import type { Live } from '../../client';
import { LineSign } from '../../components/Chart';
import { Status } from '../../components/Status';
import { SIDES, type SideKey } from '../../components/Twin';
import type { Known } from '../../lib/known';
import { describeLive } from '../../lib/status';
import { PROPORTIONAL, stylesOf, WRAP } from '../../lib/styles';
import { Bars } from '../Stage/Bars';
import { figureOf, type StageFigure } from '../Stage/figures';
import { LargeValue } from '../Stage/LargeValue';
import { LOOKS } from './curves';

interface StageSidesProps {
  known: Record<SideKey, Known>;
  sides: Record<SideKey, Live>;
  names: Record<SideKey, string>;
  /** Whether the requests in flight at each worker are shown, where there is room. */
  withWorkers: boolean;
}

/** What is read from a distance of each router, in words for those who do not know the names. */
const shown: Array<[of: StageFigure, words?: string]> = [
  ['ttft_p95', 'First token, p95'],
  ['output_tokens_per_second'],
  ['kv_hit_ratio'],
];

/** The two routers on the stage, left and right: the mode, three large figures of the step, and the workers. */
export function StageSides({ known, sides, names, withWorkers }: StageSidesProps) {
  const styles = useStyles();
  return (
    <div className={styles.sides}>
      {SIDES.map((key) => {
        const { lane } = known[key];
        const isLive = sides[key].lane !== undefined;
        return (
          <section
            key={key}
            className={cx(styles.side, !withWorkers && styles.compact)}
            aria-label={`Lane ${lane.name}`}
          >
            <div className={styles.head}>
              <h2 className={cx(!isLive && styles.past)}>
                {names[key]} <LineSign tone={lane.state.mode} look={LOOKS[key]} />
              </h2>
              {describeLive(sides[key], lane.name).tone === 'good' ? (
                <div>this step</div>
              ) : (
                <Status live={sides[key]} lane={lane.name} unnamed />
              )}
            </div>
            <dl className={styles.figures}>
              {shown
                .map(([of, words]) => ({ figure: figureOf(of, known[key]), words }))
                .map(({ figure, words = figure.name }) => (
                  <div key={figure.name}>
                    <dt>{words}</dt>
                    <dd>
                      <LargeValue figure={figure} isLive={isLive} testId={`${lane.name} ${figure.name}`} />
                    </dd>
                  </div>
                ))}
            </dl>
            {withWorkers && <Bars cluster={lane.cluster} isLive={isLive} label={`Workers of ${lane.name}`} />}
          </section>
        );
      })}
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  sides: { display: 'grid', gridTemplateColumns: 'repeat(2, minmax(0, 1fr))', columnGap: '0.8em' },
  // The parts of both begin at the same heights.
  side: {
    display: 'grid',
    gridRow: 'span 3',
    gridTemplateRows: 'subgrid',
    gridTemplateColumns: 'minmax(0, 1fr)',
    rowGap: '0.4em',
    minWidth: 0,
    padding: '0.6em 1.4em',
    borderRadius: '0.5em',
    background: theme.colors.background.primary,
    fontVariantNumeric: 'tabular-nums',
    '& > section': { padding: 0 },
    // Half a phone is too narrow for a worker's name beside its bar.
    '@media (max-width: 600px)': {
      padding: '0.8em',
      '&& li': { gridTemplateColumns: '1fr auto', gap: '0 0.6em' },
      '&& li > span:first-of-type': { gridColumn: '1 / -1', whiteSpace: 'normal', overflowWrap: 'anywhere' },
    },
  },
  // Above a showcase, the answers need the height.
  compact: {
    '@media (min-width: 601px)': {
      rowGap: 0,
      paddingBlock: '0.3em',
      '& h2': { fontSize: '2.4em' },
      '& dl dd': { fontSize: '3em', lineHeight: 1.15 },
      '& dl dd > div > span + span': { fontSize: '0.43em' }, // 24 px at 1080 lines
    },
  },
  head: {
    ...WRAP,
    alignItems: 'baseline',
    justifyContent: 'space-between',
    gap: '0 1em',
    '& h2': { fontSize: '3em', lineHeight: 1.15, margin: 0, ...PROPORTIONAL },
    '& h2 span': { fontSize: '0.6em' },
    '& > div': { fontSize: '1.5em', color: theme.colors.text.secondary },
    '@media (max-width: 600px)': { '& h2': { fontSize: '2.1em' } },
  },
  past: { color: theme.colors.text.secondary },
  figures: {
    display: 'grid',
    gridTemplateColumns: '1.3fr 1.1fr 1fr',
    gap: '0.4em 1em',
    '@media (max-width: 600px)': { gridTemplateColumns: '1fr' },
    margin: 0,
    '& dt': { fontSize: '1.5em', fontWeight: theme.typography.fontWeightRegular, color: theme.colors.text.secondary },
    '& dd': { margin: 0, fontSize: '3.8em', '@media (max-width: 600px)': { fontSize: '3em' } },
    // Beside a figure, a remark such as settling would push the next one out of its half.
    '& dd > div': { display: 'flex', flexDirection: 'column' },
    '& dd > div > span + span': { marginLeft: 0 },
  },
}));
