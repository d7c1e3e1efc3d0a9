import { LinkButton } from '@grafana/ui';

import { sweepReportAddress, useClient, type Sweep } from '../../client';
import { COLUMN, LINE, stylesOf } from '../../lib/styles';
import { reasonSuffix, kindName, progressText, spanText, sweepName } from '../../lib/sweeps';
import { dateTime } from '../../lib/time';
import { useNow } from '../../lib/useNow';
import { CapacityView } from './CapacityView';
import { Differences } from './Differences';
import { SweepBar } from './SweepBar';

/** The verdict of a sweep so far, its progress, and of a trial each difference with its interval. */
export function Verdict({ sweep }: { sweep: Sweep }) {
  const styles = useStyles();
  const client = useClient();
  const { trial, capacity, words, request } = sweep;
  return (
    <>
      <div className={styles.head}>
        <h3 className={styles.name}>{sweepName(sweep)}</h3>
        <LinkButton
          variant="secondary"
          size="sm"
          icon="document-info"
          href={sweepReportAddress(client, sweep.id, 'html')}
          target="_blank"
          rel="noopener noreferrer"
        >
          Report
        </LinkButton>
      </div>
      <State sweep={sweep} />
      <Words words={words} />
      {trial && <Differences key={sweep.id} trial={trial} request={request} />}
      {capacity && <CapacityView capacity={capacity} request={request} />}
    </>
  );
}

/** The verdict, with its first sentence large. */
function Words({ words: [first, ...others] }: { words: string[] }) {
  const styles = useStyles();
  return (
    <>
      {first && <p className={styles.verdict}>{first}</p>}
      {others.length > 0 && (
        <ul className={styles.words} aria-label="Further findings">
          {others.map((sentence) => (
            <li key={sentence}>{sentence}</li>
          ))}
        </ul>
      )}
    </>
  );
}

/** The state of a sweep. One in progress has its activity and its remaining time. */
function State({ sweep: { state, reason, cause, by, asked, ended, request, progress } }: { sweep: Sweep }) {
  const styles = useStyles();
  const kind = kindName(request.kind);
  const isGoing = state === 'running';
  const { span: now } = progress;
  const present = useNow();
  const texts = {
    running: `${kind} in progress since ${time(asked)}`,
    paused: `${kind} paused`,
    done: `${kind} finished ${time(ended)}`,
    cancelled: `${kind} cancelled ${time(ended)}`,
    failed: `${kind} failed ${time(ended)}`,
  };
  return (
    <div className={styles.state}>
      <div>
        <span role="status">
          {texts[state]}
          {reasonSuffix({ reason, cause })}
        </span>
        . {progressText({ state, progress }, present)} Requested by {by}.
      </div>
      {isGoing && <SweepBar progress={progress} />}
      {isGoing && now && <div>{spanText(now)}.</div>}
    </div>
  );
}

function time(at: string | undefined): string {
  return at === undefined ? '' : dateTime(at);
}

const useStyles = stylesOf((theme) => ({
  head: { ...LINE, gap: theme.spacing(0.5, 2) },
  name: { ...theme.typography.h4, margin: 0 },
  state: {
    ...COLUMN,
    gap: theme.spacing(0.5),
    color: theme.colors.text.secondary,
    fontVariantNumeric: 'tabular-nums',
  },
  verdict: { ...theme.typography.h5, margin: 0, textWrap: 'pretty' },
  words: { margin: 0, paddingLeft: theme.spacing(2.5), maxWidth: '90ch', textWrap: 'pretty' },
}));
