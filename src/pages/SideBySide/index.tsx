import { Button } from '@grafana/ui';

import type { Twin } from '../../client';
import { ActionFailure } from '../../components/Controls/ActionFailure';
import { HeadlineView } from '../../components/Headline';
import { Loading, LoadProblem } from '../../components/Loading';
import { Section } from '../../components/Section';
import { Caution, Pairs, type SideKey } from '../../components/Twin';
import type { Known } from '../../lib/known';
import { COLUMN, stylesOf } from '../../lib/styles';
import { useKeys } from '../../lib/useKeys';
import { Arrange } from './Arrange';
import { Courses } from './Courses';
import { ShowcaseView } from './ShowcaseView';
import { Sides } from './Sides';
import { useBoth, type Both } from './useBoth';
import { failures, useSteer, type Steer } from './useSteer';

/** Two routers that serve the same conversations at the same time, left and right. */
export default function SideBySide() {
  const both = useBoth();
  if (both.known) {
    return <Page both={both} />;
  }
  return both.live.state.status === 'loading' ? (
    <Loading text="Waiting for the load generator…" />
  ) : (
    <OneLane isLost={both.live.state.status === 'lost'} />
  );
}

/** Explains how to get a second router. */
function OneLane({ isLost }: { isLost: boolean }) {
  const styles = useStyles();
  if (isLost) {
    return <p>No data on the routers: the load generator is unreachable.</p>;
  }
  return (
    <Section
      title="Only one router here"
      info="This page shows two routers that serve the same conversations at the same time."
    >
      <div className={styles.words}>
        <p>
          With a second target, every conversation runs on both: the same opening, the same questions, at the same
          concurrency. This page then shows them next to each other.
        </p>
        <p>
          To enable this, set the load generator’s <code>twin.target.url</code> to the URL of a second server, or start
          a booth with two clusters:
        </p>
        <pre tabIndex={0}>booth demo --twin</pre>
      </div>
    </Section>
  );
}

function Page({ both }: { both: Both }) {
  const styles = useStyles();
  const steer = useSteer(both);
  useKeys({ c: steer.show });
  const { known, sides, names, histories } = both;
  const { value: twin, problem } = both.twin;
  if (!known) {
    return null;
  }
  const shown = sides.a.lane && sides.b.lane ? twin : undefined;
  return (
    <div className={styles.page}>
      <LoadProblem what="comparison" problem={problem} />
      <ActionFailure action={steer.action} titles={failures} />
      <HeadlineView state={both.live.state} headline={twin?.headline} />
      <Section
        title="Both routers now"
        info={
          'The same conversations on two targets at the same time. Figures are measured by the ' +
          'load generator in this step, separately for each lane; the bars are requests in ' +
          'flight, from each cluster’s own metrics.'
        }
      >
        <div className={styles.parts}>
          {twin && <Caution twin={twin} />}
          <div className={styles.scaled}>
            <Sides known={known} sides={sides} names={names} />
          </div>
          {shown && <Arrange twin={shown} both={both} steer={steer} />}
        </div>
      </Section>
      <Section
        title="Showcase"
        info={
          'One conversation for the audience, sent to both routers turn by turn. The next turn ' +
          'starts when both answers have ended. It is not part of any statistics.'
        }
        actions={<ShowcaseButton twin={shown} steer={steer} />}
      >
        <div className={styles.scaled}>
          <ShowcasePart known={known} twin={shown} />
        </div>
      </Section>
      <Section
        title="Last ten minutes"
        info={
          'Mean TTFT, TTFT p95 and output tokens per second of both lanes, each point over the ' +
          'preceding 60 seconds, measured by the load generator. Colors show the mode; the second ' +
          'lane’s line is dashed. A line is dotted and gray while its lane settles.'
        }
      >
        <div className={styles.scaled}>
          <Courses histories={histories} known={known} names={names} />
        </div>
      </Section>
      <Section
        title="Turn by turn"
        info={
          'Turn n of conversation k on one lane next to the same turn on the other. Differences ' +
          'between conversations cancel out as long as both lanes give similar answers.'
        }
      >
        {shown ? <Pairs twin={shown} bare /> : <p>{problem ? 'No current data on pairs.' : 'Waiting for pairs…'}</p>}
      </Section>
      {steer.confirm.dialog}
    </div>
  );
}

function ShowcaseButton({ twin, steer }: { twin: Twin | undefined; steer: Steer }) {
  if (!steer.may) {
    return steer.why ? <span title={steer.why}>Read only</span> : null;
  }
  const running = twin?.showcase?.state === 'running';
  const { busy } = steer.action;
  return running ? (
    <Button key="end" variant="secondary" icon="times" disabled={busy !== undefined} onClick={steer.end}>
      End the showcase
    </Button>
  ) : (
    <Button
      key="start" // a late click on End must not begin another one
      icon={busy === 'showcase' ? 'spinner' : 'play'}
      disabled={!twin || busy !== undefined}
      aria-keyshortcuts="C"
      onClick={steer.show}
    >
      {twin?.showcase ? 'Another showcase (C)' : 'Start a showcase (C)'}
    </Button>
  );
}

function ShowcasePart({ known, twin }: { known: Record<SideKey, Known>; twin: Twin | undefined }) {
  const styles = useStyles();
  return twin?.showcase ? (
    <ShowcaseView known={known} twin={twin} showcase={twin.showcase} />
  ) : (
    <p className={styles.none}>
      No showcase has run yet. It asks both routers the same questions at the same moment and streams both answers here.
    </p>
  );
}

const useStyles = stylesOf((theme) => ({
  page: { ...COLUMN, gap: theme.spacing(2) },
  parts: { ...COLUMN, gap: theme.spacing(1.5) },
  // All sizes below are multiples of this one, as on the stage.
  scaled: {
    ...COLUMN,
    gap: theme.spacing(1.5),
    fontSize: 'clamp(10px, 0.6vw, 16px)',
    '& > *': { minWidth: 0 },
  },
  none: { margin: 0, fontSize: theme.typography.body.fontSize, color: theme.colors.text.secondary },
  words: { maxWidth: '70ch', textWrap: 'pretty', '& pre': { margin: 0, width: 'fit-content', maxWidth: '100%' } },
}));
