import { LinkButton } from '@grafana/ui';

import { sweepReportAddress, useClient, type Sweep } from '../../client';
import { COLUMN, LINE, stylesOf } from '../../lib/styles';
import { reasonSuffix, kindName, progressText, spanText, stateWord, sweepName } from '../../lib/sweeps';
import { dateTime } from '../../lib/time';
import { useNow } from '../../lib/useNow';
import { Findings } from './Findings';
import { SweepBar } from './SweepBar';

/** The verdict of a sweep so far, its progress, and of a trial each difference with its interval. */
export function Verdict({ sweep }: { sweep: Sweep }) {
  const styles = useStyles();
  const client = useClient();
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
      <Findings sweep={sweep} />
    </>
  );
}

/** The state of a sweep. One in progress has its activity and its remaining time. */
function State({ sweep: { state, reason, cause, by, asked, ended, request, progress } }: { sweep: Sweep }) {
  const styles = useStyles();
  const isGoing = state === 'running';
  const { span: now } = progress;
  const present = useNow();
  return (
    <div className={styles.state}>
      <div>
        <span role="status">
          {kindName(request.kind)} {stateWord(state)}
          {isGoing ? ` since ${dateTime(asked)}` : ended && ` ${dateTime(ended)}`}
          {reasonSuffix({ reason, cause })}
        </span>
        . {progressText({ state, progress }, present)} Requested by {by}.
      </div>
      {isGoing && <SweepBar progress={progress} />}
      {isGoing && now && <div>{spanText(now)}.</div>}
    </div>
  );
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
}));
