import { useState } from 'react';
import { cx } from '@emotion/css';

import { useLive, type Headline, type HeadlineKind, type LiveState } from '../../client';
import { withoutBreaks } from '../../lib/format';
import { lastKnown } from '../../lib/known';
import { PLAIN_LIST, stylesOf, verdicts, visuallyHidden, WRAP } from '../../lib/styles';
import { capital } from '../../lib/text';
import { clock } from '../../lib/time';

interface HeadlineViewProps {
  state: LiveState;
  /** The last known one. */
  headline?: Headline;
  /** Why the difference may have another cause than the modes. */
  caution?: string;
  /** Whether it is read from a distance. Its sizes are then multiples of the surrounding font size. */
  large?: boolean;
}

/**
 * The result of a step in one sentence, what it rests on, and a line for each comparison. Its words are the load
 * generator's, unless that is unreachable.
 */
export function HeadlineView({ state, headline, caution, large }: HeadlineViewProps) {
  const shown = shownOf(state, headline, large);
  return shown ? <Result {...shown} caution={shown.kind === 'lost' ? undefined : caution} large={large} /> : null;
}

/** The headline of a lane. */
export function LaneHeadline({ lane }: { lane: string }) {
  const live = useLive(lane);
  return <HeadlineView state={live.state} headline={lastKnown(live, lane)?.lane.baseline.headline} />;
}

interface Shown extends Omit<Headline, 'kind'> {
  kind: HeadlineKind | 'lost';
}

/** Returns what is shown. Pages and panels have an alert of their own on why the load generator is lost. */
function shownOf(state: LiveState, headline: Headline | undefined, withReason?: boolean): Shown | undefined {
  const none = { certain: false, detail: [], lines: [] };
  switch (state.status) {
    case 'loading':
      return { ...none, kind: 'waiting', text: 'Waiting for the load generator' };
    case 'lost':
      return {
        ...none,
        kind: 'lost',
        text: `Load generator lost since ${clock(state.since)}`,
        detail: [state.problem],
      };
    case 'live':
      return headline;
  }
}

interface ResultProps extends Shown, Pick<HeadlineViewProps, 'caution' | 'large'> {}

function Result({ caution, large, ...headline }: ResultProps) {
  const styles = useStyles();
  const { text, difference = '', kind, certain, lines } = headline;
  const announced = useAnnounced(text, `${kind} ${certain}`);
  const start = text.indexOf(difference);
  const end = start + difference.length;
  const detail = detailOf(headline);
  return (
    <section className={cx(styles.part, large ? styles.large : styles.small)} aria-label="Result">
      <p className={cx(styles.sentence, isFaint(kind) && styles.faint, kind === 'lost' && styles.lost)}>
        {text.slice(0, start)}
        {difference && <strong data-kind={kind}>{withoutBreaks(difference)}</strong>}
        {text.slice(end)}
      </p>
      <p className={styles.detail}>{withoutBreaks(detail)}</p>
      {caution && <p className={cx(styles.detail, styles.caution)}>{caution}</p>}
      {lines.length > 0 && (
        <ul className={styles.lines} aria-label="Comparisons">
          {lines.map((line) => (
            <li key={`${line.against} ${line.metric}`}>
              <span className={styles.mark} data-kind={line.kind} aria-hidden="true">
                {marks[line.kind]}
              </span>
              <span>{withoutBreaks(line.text)}</span>
            </li>
          ))}
        </ul>
      )}
      <div className={visuallyHidden} aria-live="polite">
        {announced}
      </div>
    </section>
  );
}

/** What a comparison shows, as a sign for those who look and do not read. */
const marks: Record<HeadlineKind, string> = { better: '▲', worse: '▼', same: '=', uncertain: '?', waiting: '…' };

function isFaint(kind: Shown['kind']): boolean {
  return kind === 'uncertain' || kind === 'waiting';
}

/** Returns the sentence as a screen reader announces it: when its meaning changes, not with each second of a wait. */
function useAnnounced(text: string, meaning: string): string {
  const [announced, setAnnounced] = useState({ text, meaning });
  if (announced.meaning !== meaning) {
    setAnnounced({ text, meaning });
  }
  return announced.text;
}

/** Returns the time until certainty, where it is known, and what the sentence rests on, in one line. */
function detailOf({ certain_in_seconds: left, detail }: Shown): string {
  const wait = left === undefined ? [] : [`certain in ${about(left)}`];
  return capital([...wait, ...detail].join(' · '));
}

/** The seconds from which a duration is given in minutes. */
const MINUTES_FROM = 90;

/** Formats an estimated duration: in steps of ten seconds, or in minutes. */
function about(seconds: number): string {
  return seconds <= MINUTES_FROM
    ? `about ${10 * Math.max(1, Math.ceil(seconds / 10))} s`
    : `about ${Math.round(seconds / 60)} min`;
}

const useStyles = stylesOf((theme) => {
  const { text, error, warning, background } = theme.colors;
  const { fontWeightMedium, fontWeightBold, h3, body } = theme.typography;
  const { better, worse } = verdicts(theme);
  return {
    part: {
      position: 'relative', // its announcement is placed absolutely
      background: background.primary,
      textWrap: 'balance',
      '& p': { margin: 0 },
    },
    large: {
      padding: '0.6em 1.4em',
      borderRadius: '0.5em',
      '--sentence': '2.4em',
      '--detail': '1.5em',
      '--lines': '1.3em',
    },
    small: {
      padding: theme.spacing(1.5, 2),
      border: `1px solid ${theme.colors.border.weak}`,
      borderRadius: theme.shape.radius.default,
      '--sentence': `clamp(1.2rem, 1.6vw, calc(1.3 * ${h3.fontSize}))`,
      '--detail': body.fontSize,
      '--lines': body.fontSize,
    },
    sentence: {
      fontSize: 'var(--sentence)',
      lineHeight: 1.2,
      fontWeight: fontWeightMedium,
      '& strong': {
        fontWeight: fontWeightBold,
        whiteSpace: 'nowrap',
        '&[data-kind="better"]': better,
        '&[data-kind="worse"]': worse,
      },
      '@media (max-width: 600px)': { fontSize: 'min(var(--sentence), 22px)' },
    },
    faint: { color: text.secondary, '& strong': { color: text.primary } },
    lost: { color: error.text },
    detail: {
      fontSize: 'var(--detail)',
      lineHeight: 1.35,
      minHeight: '1.35em', // the sentence below does not move when it appears
      color: text.secondary,
    },
    caution: { color: warning.text },
    lines: {
      ...WRAP,
      gap: '0 2em',
      ...PLAIN_LIST,
      fontSize: 'var(--lines)',
      lineHeight: 1.35,
      '& li': { display: 'flex' },
    },
    mark: {
      flex: 'none',
      width: '1.3em',
      color: text.secondary,
      '&[data-kind="better"]': { color: better.color },
      '&[data-kind="worse"]': { color: worse.color },
    },
  };
});
