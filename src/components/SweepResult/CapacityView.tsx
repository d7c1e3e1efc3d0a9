import type { Capacity, ModeCapacity, SweepRequest } from '../../client';
import { levelText, valueOf, type Level } from '../../lib/level';
import { modeKey, modeText } from '../../lib/names';
import { COLUMN, stylesOf } from '../../lib/styles';

interface CapacityViewProps {
  capacity: Capacity;
  request: SweepRequest;
}

/** The levels that each mode sustains within the SLOs, the levels tested, and where the modes cross. */
export function CapacityView({ capacity: { modes, crossing }, request }: CapacityViewProps) {
  const styles = useStyles();
  return (
    <dl className={styles.list} aria-label="Capacity">
      {modes.map((one) => (
        <div key={modeKey(one.mode)}>
          <dt>{modeText(one.mode)} sustains</dt>
          <dd>
            <b>{sustainedText(one)}</b>
            <small>{testedText(one)}</small>
          </dd>
        </div>
      ))}
      {modes.length > 1 && (
        <div>
          <dt>Modes cross at</dt>
          <dd>
            <b>
              {crossing?.level === undefined
                ? 'not found'
                : withInterval(crossing.level, crossing.interval, crossing.above)}
            </b>
            {crossing && <small>{belowText(crossing.below, request)}</small>}
          </dd>
        </div>
      )}
    </dl>
  );
}

function sustainedText({ level, interval, above, tested }: ModeCapacity): string {
  if (level === undefined) {
    return 'not known yet';
  }
  if (interval && above && valueOf(interval[0]) === 0) {
    return 'cannot be determined from these levels';
  }
  if (valueOf(level) > 0) {
    return withInterval(level, interval, above);
  }
  return tested[0]?.verdict === 'open' && interval
    ? `possibly none (${intervalText(interval, above)})`
    : 'none of the levels tested';
}

/** Where no level certainly misses, the interval has no upper bound. */
function withInterval(level: Level, interval: ModeCapacity['interval'], above: boolean | undefined): string {
  return interval ? `${levelText(level)} (${intervalText(interval, above)})` : levelText(level);
}

function intervalText([low, high]: [Level, Level], above: boolean | undefined): string {
  return `${levelText(low)}–${levelText(high)}${above ? ' or more' : ''}`;
}

function testedText({ tested, isolated }: ModeCapacity): string {
  const levelsWith = (verdict: string) =>
    tested.filter((test) => test.verdict === verdict).map(({ concurrency }) => concurrency);
  const parts = [
    ['meets the SLOs at', levelsWith('meets')],
    ['misses them at', levelsWith('misses')],
    ['undecided at', levelsWith('open')],
    ['also meets them above the first miss, at', isolated],
  ] as const;
  return parts
    .filter(([, levels]) => levels.length > 0)
    .map(([words, levels]) => `${words} ${levels.map(levelText).join(', ')}`)
    .join('; ');
}

function belowText(below: 'a' | 'b', { modes = [] }: SweepRequest): string {
  const mode = modes[below === 'a' ? 0 : 1];
  return mode ? `below it, ${modeText(mode)} has the lower TTFT p95` : '';
}

const useStyles = stylesOf((theme) => ({
  list: {
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(220px, 100%), 1fr))',
    gap: theme.spacing(1, 2),
    margin: 0,
    fontVariantNumeric: 'tabular-nums',
    '& dt': { color: theme.colors.text.secondary, fontWeight: theme.typography.fontWeightRegular },
    '& dd': { ...COLUMN, margin: 0 },
    '& b': { ...theme.typography.h4, margin: 0 },
    '& small': { color: theme.colors.text.secondary },
  },
}));
