import type { LaneSnapshot, Sweep, SweepSummary } from '../../client';
import { meanTTFT, timeFigure, valueFigure } from '../../lib/figures';
import { span, valueWithUnit } from '../../lib/format';
import type { Known } from '../../lib/known';
import { modeKey, modeText } from '../../lib/names';
import { LOW, PLAIN_LIST, stylesOf, WRAP } from '../../lib/styles';
import { spanText } from '../../lib/sweeps';
import { clock } from '../../lib/time';
import { formats } from './history';

/** Returns the trial that has the lane. */
export function trialOf(lane: LaneSnapshot | undefined): SweepSummary | undefined {
  const sweep = lane?.state.sweep;
  return sweep?.request.kind === 'trial' && sweep.state === 'running' ? sweep : undefined;
}

interface TrialProps {
  known: Known;
  trial: SweepSummary;
  /** Its measurements; undefined until they are loaded. */
  sweep?: Sweep;
}

/** The span in progress, and when the next look is. */
export function Trial({ known, trial: { progress, request }, sweep }: TrialProps) {
  const styles = useStyles();
  const { span: now, seconds_least: least } = progress;
  const state = sweep?.trial;
  const first = (state?.first_look ?? 2) * (request.modes?.length ?? 2);
  return (
    <section className={styles.trial} aria-label="Trial">
      {now && <span>{spanText(now, state && !state.primary ? first : undefined)}</span>}
      {least !== undefined && (
        <span>
          {state?.primary ? 'Next' : 'First'} look in about {span(Math.ceil(least))}, at{' '}
          {clock(Date.parse(known.time) + 1000 * least, 'minute')}
        </span>
      )}
    </section>
  );
}

const armFigures = {
  ttft_p95: [meanTTFT, timeFigure('ttft', 'p95')],
  output_tokens_per_second: [valueFigure('output_tokens_per_second')],
};

/** Returns the name of the large figure of the arms, below which a curve is. */
export const armsName = (value: keyof typeof armFigures) => armFigures[value][0].name;

interface ArmsProps extends Omit<TrialProps, 'known'> {
  value: keyof typeof armFigures;
}

/** The figures of the arms of a trial so far, over all spans that count, as in its table. */
export function Arms({ trial, sweep, value }: ArmsProps) {
  const styles = useStyles();
  const [main, ...others] = armFigures[value];
  const { modes = [] } = trial.request;
  const current = trial.progress.span?.mode;
  return (
    <ul className={styles.arms} aria-label={`${main.name} of the arms`}>
      {modes.map((mode) => {
        const row = sweep?.rows.find((one) => modeKey(one) === modeKey(mode));
        return (
          <li key={modeKey(mode)} aria-current={current && modeKey(current) === modeKey(mode)}>
            <span>{modeText(mode)}</span> <b>{valueWithUnit(row && main.value(row), formats[value])}</b>
            {others.map((other) => (
              <small key={other.key}>
                {other.name} {valueWithUnit(row && other.value(row), formats[value])}
              </small>
            ))}
          </li>
        );
      })}
    </ul>
  );
}

const useStyles = stylesOf((theme) => ({
  trial: {
    ...WRAP,
    justifyContent: 'space-between',
    gap: '0 2em',
    fontSize: '1.5em',
    lineHeight: 1.3,
    color: theme.colors.text.secondary,
    fontVariantNumeric: 'tabular-nums',
  },
  arms: {
    ...PLAIN_LIST,
    '& li': {
      ...WRAP,
      alignItems: 'baseline',
      gap: '0 0.4em',
      fontSize: '1.6em',
      lineHeight: 1.2,
      [LOW]: { fontSize: '1.2em', '& small': { display: 'none' } },
    },
    '& li[aria-current="true"] > span::before': { content: '"▶ " / ""', color: theme.colors.primary.text },
    '& b': { fontSize: '2.2em', fontWeight: theme.typography.fontWeightBold },
    '& small': { fontSize: '0.9em', color: theme.colors.text.secondary },
  },
}));
