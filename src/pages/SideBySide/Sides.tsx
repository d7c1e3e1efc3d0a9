import { cx } from '@emotion/css';

import type { Live } from '../../client';
import { LineSign } from '../../components/Chart';
import { Imitation, Status } from '../../components/Status';
import { SIDES, type SideKey } from '../../components/Twin';
import type { Known } from '../../lib/known';
import { describeLive } from '../../lib/status';
import { LOW, NARROW, PROPORTIONAL, stylesOf, WRAP } from '../../lib/styles';
import { Bars } from '../Stage/Bars';
import { figureOf, type StageFigure } from '../Stage/figures';
import { LargeValue } from '../Stage/LargeValue';
import { LOOKS } from './curves';

interface SidesProps {
  known: Record<SideKey, Known>;
  sides: Record<SideKey, Live>;
  names: Record<SideKey, string>;
  /** Whether it is on the stage, which keeps earlier figures, and has no address. */
  large?: boolean;
  /** Leaves the height to what is below. */
  compact?: boolean;
}

/** What is read from a distance of each router, in words for those who do not know the names. */
const shown: Array<[of: StageFigure, words?: string]> = [
  ['ttft_p95', 'First token, p95'],
  ['output_tokens_per_second'],
  ['kv_hit_ratio'],
];

/** What is read on the page. */
const all: typeof shown = [['ttft_p50'], ['ttft_p95'], ...shown.slice(1)];

/** The two routers, left and right: the mode, the figures of the step, and the workers. */
export function Sides({ known, sides, names, large, compact }: SidesProps) {
  const styles = useStyles();
  return (
    <div className={styles.sides}>
      {SIDES.map((key) => {
        const { lane } = known[key];
        const isLive = sides[key].lane !== undefined;
        const isCalm = large && describeLive(sides[key], lane.name).tone === 'good';
        return (
          <section key={key} className={cx(styles.side, compact && styles.compact)} aria-label={`Lane ${lane.name}`}>
            <div className={styles.head}>
              <h2 className={cx(!isLive && styles.past)}>
                {names[key]} <LineSign tone={lane.state.mode} look={LOOKS[key]} />
              </h2>
              {isCalm ? <div>this step</div> : <Status live={sides[key]} lane={lane.name} unnamed={large} />}
              {!large && <span>{lane.target.url}</span>}
              {!large && <Imitation lane={lane} />}
            </div>
            <dl className={styles.figures}>
              {(large ? shown : all)
                .map(([of, words]) => ({ figure: figureOf(of, large || isLive ? known[key] : undefined), words }))
                .map(({ figure, words = figure.name }) => (
                  <div key={figure.name}>
                    <dt>{words}</dt>
                    <dd>
                      <LargeValue figure={figure} isLive={isLive} testId={`${lane.name} ${figure.name}`} />
                    </dd>
                  </div>
                ))}
            </dl>
            {!compact && <Bars cluster={lane.cluster} isLive={isLive} label={`Workers of ${lane.name}`} />}
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
    '& > section': { padding: 0, [LOW]: { display: 'none' } },
    // Half a phone is too narrow for a worker's name beside its bar.
    [NARROW]: {
      padding: '0.8em',
      '&& li': { gridTemplateColumns: '1fr auto', gap: '0 0.6em' },
      '&& li > span:first-of-type': { gridColumn: '1 / -1', whiteSpace: 'normal', overflowWrap: 'anywhere' },
    },
    [LOW]: { padding: '0.2em 0.8em', rowGap: 0 },
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
    alignContent: 'flex-start',
    justifyContent: 'space-between',
    gap: '0 1em',
    '& h2': { fontSize: '3em', lineHeight: 1.15, margin: 0, overflowWrap: 'anywhere', ...PROPORTIONAL },
    '& h2 span': { fontSize: '0.6em' },
    '& > :not(h2)': { fontSize: '1.5em', color: theme.colors.text.secondary, overflowWrap: 'anywhere' },
    [NARROW]: { '& h2': { fontSize: '2.1em' } },
    [LOW]: { '& h2': { fontSize: '1.8em' }, '& > :not(h2)': { display: 'none' } },
  },
  past: { color: theme.colors.text.secondary },
  figures: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(13em, 100%), auto))',
    gap: '0.4em 1em',
    margin: 0,
    '& dt': { fontSize: '1.5em', fontWeight: theme.typography.fontWeightRegular, color: theme.colors.text.secondary },
    '& dd': { margin: 0, fontSize: '3.8em', [NARROW]: { fontSize: '3em' }, [LOW]: { fontSize: '2.4em' } },
    // Beside a figure, a remark such as settling would push the next one out of its half.
    '& dd > div': { display: 'flex', flexDirection: 'column' },
    '& dd > div > span + span': { marginLeft: 0 },
    [NARROW]: { gridTemplateColumns: '1fr' },
    [LOW]: {
      gap: 0,
      '& > div': { display: 'flex', justifyContent: 'space-between', alignItems: 'baseline' },
      '& dt': { fontSize: '1.2em' },
    },
  },
}));
