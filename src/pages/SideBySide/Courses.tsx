import { figures } from '../../client';
import { Chart, ChartGroup, LineSign, SETTLING } from '../../components/Chart';
import { SIDES, type SideKey } from '../../components/Twin';
import { meanTTFT, percentileName } from '../../lib/figures';
import type { Known } from '../../lib/known';
import { COLUMN, stylesOf, WRAP } from '../../lib/styles';
import { formats, spanOf, type Value } from '../Stage/history';
import { ceilingOfBoth, changesOfBoth, linesOfBoth, LOOKS, type Histories } from './curves';

interface CoursesProps {
  histories: Histories;
  known: Record<SideKey, Known>;
  names: Record<SideKey, string>;
  /** Omits the legend, where one is above it. */
  bare?: boolean;
}

/** Each value with its name, and with that for a crowd, which does not have to know TTFT. */
const courses: Array<[value: Value, name: string, plain: string]> = [
  ['ttft_mean', meanTTFT.name, 'First token, mean'],
  ['ttft_p95', percentileName('ttft', 'p95'), 'First token, p95'],
  ['output_tokens_per_second', figures.output_tokens_per_second.name, figures.output_tokens_per_second.name],
];

/** The last ten minutes of both sides, each value in one graph. */
export function Courses(props: CoursesProps) {
  const styles = useStyles();
  const { histories, known, names, bare } = props;
  return (
    <div className={styles.all}>
      {!bare && (
        <div className={styles.legend}>
          {SIDES.map((key) => (
            <span key={key}>
              <LineSign tone={known[key].lane.state.mode} look={LOOKS[key]} /> {names[key]}
            </span>
          ))}
          {SIDES.some((key) => histories[key].some(({ settling }) => settling)) && (
            <span>
              <LineSign {...SETTLING} /> settling
            </span>
          )}
        </div>
      )}
      <div className={styles.row}>
        <ChartGroup>
          {courses.map(([value, name, plain]) => (
            <Course key={value} value={value} name={bare ? plain : name} {...props} />
          ))}
        </ChartGroup>
      </div>
    </div>
  );
}

function Course({ value, name, histories, known, names }: CoursesProps & { value: Value; name: string }) {
  const styles = useStyles();
  const longest = SIDES.map((key) => histories[key]).reduce((a, b) => (a.length < b.length ? b : a));
  return (
    <figure className={styles.course}>
      <figcaption>
        {name} <small>over the preceding 60 s</small>
      </figcaption>
      <div className={styles.curve}>
        <Chart
          label={`${name} of both lanes, the last ten minutes`}
          x={spanOf(longest, Date.parse(known.a.time))}
          lines={linesOfBoth(histories, value, names)}
          marks={changesOfBoth(histories)}
          format={formats[value]}
          slo={value === 'ttft_p95' ? known.a.settings.slo.ttft : undefined}
          ceiling={ceilingOfBoth(histories, value)}
        />
      </div>
    </figure>
  );
}

const useStyles = stylesOf((theme) => ({
  all: { ...COLUMN, flex: '1 1 auto', gap: '0.4em', minWidth: 0 },
  legend: { ...WRAP, gap: '0.2em 1.6em', fontSize: '1.4em' },
  row: { ...WRAP, flex: '1 1 auto', gap: '0.8em' },
  course: {
    ...COLUMN,
    flex: '1 1 26em',
    minWidth: 0,
    margin: 0,
    '& figcaption': { fontSize: '1.5em', fontWeight: theme.typography.fontWeightMedium },
    '& small': { fontSize: '0.9em', fontWeight: 'normal', color: theme.colors.text.secondary },
  },
  curve: { flex: '1 1 0', minHeight: 'var(--least, 14em)', fontSize: '1.3em' },
}));
