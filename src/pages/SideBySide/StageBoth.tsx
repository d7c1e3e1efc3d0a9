import React from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import { Status } from '../../components/Status';
import { cautionText } from '../../components/Twin';
import { number } from '../../lib/format';
import { useKeys } from '../../lib/useKeys';
import { LANE } from '../lane';
import { Courses } from './Courses';
import { ShowcaseView } from './ShowcaseView';
import { Sides } from './Sides';
import { useBoth } from './useBoth';
import { failures, useSteer } from './useSteer';

/** Both routers for a crowd: left and right, and below them the showcase, or the last ten minutes where there is none. */
export default function StageBoth() {
  const styles = useStyles2(getStyles);
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
  const shown = sides.a.lane && sides.b.lane ? twin : undefined;
  return (
    <>
      <div className={styles.head}>
        <span>
          <b>{number(sides.a.lane?.state.concurrency.target)}</b> concurrent conversations, the same on both routers
        </span>
        {twin?.caution && <span className={styles.caution}>{cautionText(twin)}</span>}
      </div>
      {(failure ?? problem) && (
        <div role="alert" className={styles.trouble}>
          {failure
            ? `${failures[failure.name]}: ${failure.problem.message}`
            : `The comparison could not be loaded: ${problem?.message}`}
        </div>
      )}
      <div className={styles.part}>
        <Sides known={known} sides={sides} twin={twin} />
      </div>
      <div className={styles.rest}>
        {shown?.showcase ? (
          <ShowcaseView known={known} twin={shown} showcase={shown.showcase} bare />
        ) : (
          <Courses histories={histories} known={known} names={names} isLive={sides.a.lane !== undefined} twin={twin} />
        )}
      </div>
    </>
  );
}

const getStyles = (theme: GrafanaTheme2) => {
  // Two routers and a showcase have to fit where the other view has one router.
  const fontSize = 'max(10px, 0.6em)';
  const part = { fontSize, padding: '0.8em 1.4em', borderRadius: '0.5em', background: theme.colors.background.primary };
  return {
    head: css({
      display: 'flex',
      flexWrap: 'wrap',
      alignItems: 'baseline',
      gap: '0 1.4em',
      fontSize: '1.4em',
      color: theme.colors.text.secondary,
      fontVariantNumeric: 'tabular-nums',
      '& b': { fontSize: '1.6em', color: theme.colors.text.primary },
    }),
    caution: css({ color: theme.colors.warning.text }),
    trouble: css({ fontSize: '1.8em', color: theme.colors.error.text }),
    status: css({ fontSize: '1.8em' }),
    part: css(part),
    rest: css({ ...part, display: 'flex', flexDirection: 'column', flex: '1 1 auto', minHeight: 0 }),
  };
};
