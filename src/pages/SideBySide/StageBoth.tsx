import type { Headline, Twin } from '../../client';
import { HeadlineView } from '../../components/Headline';
import { Status } from '../../components/Status';
import { cautionText } from '../../components/Twin';
import { COLUMN, LOW, stylesOf } from '../../lib/styles';
import { useKeys } from '../../lib/useKeys';
import { LANE } from '../lane';
import { Courses } from './Courses';
import { ShowcaseView } from './ShowcaseView';
import { Sides } from './Sides';
import { useBoth } from './useBoth';
import { failures, useSteer } from './useSteer';

/**
 * Both routers on the stage: the difference in one sentence, the figures left and right, and below them the showcase,
 * or the last ten minutes without one.
 */
export default function StageBoth() {
  const styles = useStyles();
  const both = useBoth();
  const steer = useSteer(both);
  useKeys({ c: steer.show });
  const { known, sides, names, histories } = both;
  const { value: twin, problem } = both.twin;
  if (!known) {
    return (
      <div className={styles.status}>
        <Status live={both.live} lane={LANE} />
      </div>
    );
  }
  const { failure } = steer.action;
  const isLive = sides.a.lane !== undefined && sides.b.lane !== undefined;
  const showcase = isLive ? twin?.showcase : undefined;
  return (
    <>
      {(failure ?? problem) && (
        <div role="alert" className={styles.trouble}>
          {failure
            ? `${failures[failure.name]}: ${failure.problem.message}`
            : `The comparison could not be loaded: ${problem?.message}`}
        </div>
      )}
      <HeadlineView
        state={both.live.state}
        headline={twin && headlineOf(twin)}
        caution={twin && twin.evidence !== 'none' ? cautionText(twin) : undefined}
        large
      />
      <Sides known={known} sides={sides} names={names} large compact={showcase !== undefined} />
      <div className={styles.rest}>
        {twin && showcase ? (
          <ShowcaseView known={known} twin={twin} showcase={showcase} bare />
        ) : (
          <Courses histories={histories} known={known} names={names} bare />
        )}
      </div>
    </>
  );
}

/** Returns the result of the pairs. Clusters that have not been compared are part of what it rests on, no warning. */
function headlineOf({ headline, evidence, caution }: Twin): Headline {
  return evidence === 'none' && caution ? { ...headline, detail: [...headline.detail, caution] } : headline;
}

const useStyles = stylesOf((theme) => ({
  trouble: { fontSize: '1.8em', color: theme.colors.error.text },
  status: { fontSize: '1.8em' },
  rest: {
    ...COLUMN,
    flex: '1 1 auto',
    minHeight: 0,
    padding: '0.6em 1.4em',
    borderRadius: '0.5em',
    background: theme.colors.background.primary,
    [LOW]: { order: 2 },
    '--least': '8em', // there is less room than on a page, but all of it is used
  },
}));
