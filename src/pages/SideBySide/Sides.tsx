import type { Live } from '../../client';
import { LineSign } from '../../components/Chart';
import { Imitation, Status } from '../../components/Status';
import { SIDES, type SideKey } from '../../components/Twin';
import { DASH } from '../../lib/format';
import type { Known } from '../../lib/known';
import { modeText } from '../../lib/names';
import { PROPORTIONAL, stylesOf, WRAP } from '../../lib/styles';
import { Bars } from '../Stage/Bars';
import { FIGURES, figureOf } from '../Stage/figures';
import { LargeValue } from '../Stage/LargeValue';
import { LOOKS } from './curves';

/** The two routers left and right: the mode as the title, four figures of the step, and the workers. */
export function Sides({ known, sides }: { known: Record<SideKey, Known>; sides: Record<SideKey, Live> }) {
  const styles = useStyles();
  return (
    <div className={styles.sides}>
      {SIDES.map((key) => (
        <Side key={key} look={LOOKS[key]} known={known[key]} live={sides[key]} />
      ))}
    </div>
  );
}

interface SideProps {
  look: (typeof LOOKS)[SideKey];
  known: Known;
  live: Live;
}

function Side({ look, known, live }: SideProps) {
  const styles = useStyles();
  const { name, state, target } = known.lane;
  return (
    <section className={styles.side} aria-label={`Lane ${name}`}>
      <h2 className={styles.title}>
        {live.lane ? modeText(state) : DASH} <LineSign tone={state.mode} look={look} />
      </h2>
      <div className={styles.where}>
        <Status live={live} lane={name} />
        <span className={styles.target}>{target.url}</span>
        <Imitation lane={known.lane} />
      </div>
      <dl className={styles.figures}>
        {FIGURES.map((of) => figureOf(of, live.lane && known)).map((figure) => (
          <div key={figure.name}>
            <dt>{figure.name}</dt>
            <dd>
              <LargeValue figure={figure} isLive testId={`${name} ${figure.name}`} />
            </dd>
          </div>
        ))}
      </dl>
      <Bars cluster={live.lane?.cluster} isLive={live.lane !== undefined} label={`Workers of ${name}`} />
    </section>
  );
}

const useStyles = stylesOf((theme) => {
  const { text, background } = theme.colors;
  return {
    sides: {
      display: 'grid',
      gridTemplateColumns: 'repeat(2, minmax(0, 1fr))',
      columnGap: 'clamp(0.8em, 2vw, 2.4em)',
    },
    // The parts of both begin at the same heights, whatever the number of lines of their names.
    side: {
      display: 'grid',
      gridRow: 'span 4',
      gridTemplateRows: 'subgrid',
      gridTemplateColumns: 'minmax(0, 1fr)',
      rowGap: '0.6em',
      minWidth: 0,
      fontVariantNumeric: 'tabular-nums',
      '& > section': { padding: '0.8em 0 0', background: 'none' },
      // Half a phone is too narrow for a worker's name beside its bar.
      '@media (max-width: 600px)': {
        '&& li': { gridTemplateColumns: '1fr auto', gap: '0 0.6em' },
        '&& li > span:first-of-type': {
          gridColumn: '1 / -1',
          fontSize: '0.8em',
          whiteSpace: 'normal',
          overflowWrap: 'anywhere',
        },
      },
    },
    title: {
      fontSize: '3.6em',
      lineHeight: 1.15,
      margin: 0,
      overflowWrap: 'anywhere',
      ...PROPORTIONAL,
      '& span': { fontSize: '0.5em' },
      '@media (max-width: 600px)': { fontSize: '2.1em' },
    },
    where: {
      ...WRAP,
      alignItems: 'baseline',
      gap: '0.2em 1em',
      fontSize: '1.4em',
      color: text.secondary,
      alignContent: 'flex-start',
      '@media (max-width: 600px)': { fontSize: '1.2em' },
    },
    target: { overflowWrap: 'anywhere' },
    figures: {
      display: 'grid',
      gridTemplateColumns: 'repeat(auto-fit, minmax(min(11em, 100%), 1fr))',
      gap: '0.6em 1em',
      margin: 0,
      '& > div': { padding: '0.6em 0.9em', borderRadius: '0.4em', background: background.secondary },
      '& dt': { fontSize: '1.3em', fontWeight: theme.typography.fontWeightRegular, color: text.secondary },
      '& dd': {
        margin: 0,
        fontSize: '2.6em',
        lineHeight: 1.15,
        whiteSpace: 'nowrap',
        fontWeight: theme.typography.fontWeightBold,
      },
      '@media (max-width: 600px)': { '& dd': { fontSize: '2.4em' } },
    },
  };
});
