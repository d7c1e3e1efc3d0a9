import React, { useCallback, useMemo } from 'react';
import { css } from '@emotion/css';
import { Link, useSearchParams } from 'react-router-dom';

import type { GrafanaTheme2 } from '@grafana/data';
import { Alert, LoadingPlaceholder, useStyles2 } from '@grafana/ui';

import { useBaselines, useLive, type Live } from '../../client';
import { DeploymentTable } from '../../components/Deployment';
import { Section } from '../../components/Section';
import { lastKnown } from '../../lib/known';
import { recordedTable } from '../../lib/recorded';
import { targetKind, targetNotes } from '../../lib/target';
import { LANE } from '../lane';
import { Checklist } from './Checklist';
import { useVendor, type Vendor } from '../../vendor';
import { contentOf } from './content';
import type { Visitor } from './content/visitors';
import { buildFacts } from './facts';
import { FactsProvider } from './FactsContext';
import { Reference } from './Reference';
import { ReadOn } from './ReadOn';
import { Scenes } from './Scenes';
import { Screens } from './Screens';
import { Pitch, PlatformStory, Results, Takeaways } from './Story';
import { Visitors } from './Visitors';

/** The name of the choice in the address. */
const VISITOR = 'visitor';

/** What a presenter needs at hand: whom to tell what, the flow, the questions, the words. */
export default function Guide() {
  const live = useLive(LANE);
  const { value: vendor, problem } = useVendor(LANE);
  if (!vendor) {
    return problem ? (
      <Alert severity="warning" title="The guide failed to load">
        {problem.message} Retrying every few seconds.
      </Alert>
    ) : (
      <LoadingPlaceholder text="Opening presenter’s guide" />
    );
  }
  return <Told live={live} vendor={vendor} />;
}

/** The guide as it is told under one vendor. */
function Told({ live, vendor }: { live: Live; vendor: Vendor }) {
  const styles = useStyles2(getStyles);
  const content = useMemo(() => contentOf(vendor), [vendor]);
  const { value: baselines } = useBaselines(lastKnown(live, LANE)?.settings.slo);
  const facts = useMemo(
    () => buildFacts({ live, baselines, published: content.published }),
    [live, baselines, content]
  );
  const [visitor, choose] = useVisitor(content.visitors);
  const note = targetNotes[targetKind(live.lane, undefined)];
  const [first, second] = visitor?.story === 'first' ? [PlatformStory, Pitch] : [Pitch, PlatformStory];
  const First = first;
  const Second = second;
  return (
    <FactsProvider facts={facts}>
      <div className={styles.guide}>
        <Contents />
        {note && <p className={styles.note}>{note}</p>}
        <div id="visitors">
          <Visitors visitors={content.visitors} visitor={visitor} onChoose={choose} />
        </div>
        <div id="story" className={styles.group}>
          <First content={content} visitor={visitor} />
          <Second content={content} visitor={visitor} />
        </div>
        <div id="takeaways">
          <Takeaways content={content} visitor={visitor} />
        </div>
        <div id="results">
          <Results />
        </div>
        <div id="screens">
          <Screens screens={content.screens} />
        </div>
        <div id="scenes">
          <Scenes />
        </div>
        <div id="checklist">
          <Checklist live={live} baselines={baselines} />
        </div>
        <div id="deployment">
          <Section
            title="The recorded deployment"
            info="Hardware, versions and settings of the runs behind the recorded figures, as documented, next to the live deployment."
          >
            <DeploymentTable
              live={lastKnown(live, LANE)?.lane.target.deployment}
              recorded={recordedTable(baselines, live.lane)}
            />
          </Section>
        </div>
        <Reference content={content} visitor={visitor} />
        <div id="read-on">
          <ReadOn of={content.readOn} />
        </div>
      </div>
    </FactsProvider>
  );
}

/** The kind of visitor that the address names, and a way to name another. */
function useVisitor(visitors: Visitor[]): [Visitor | undefined, (id: string) => void] {
  const [params, setParams] = useSearchParams();
  const choose = useCallback(
    (id: string) =>
      setParams(
        (before) => {
          const next = new URLSearchParams(before);
          if (id) {
            next.set(VISITOR, id);
          } else {
            next.delete(VISITOR);
          }
          return next;
        },
        { replace: true }
      ),
    [setParams]
  );
  return [visitors.find(({ id }) => id === params.get(VISITOR)), choose];
}

const contents = [
  ['visitors', 'Visitor'],
  ['story', 'Pitch and platform'],
  ['takeaways', 'Take home'],
  ['results', 'Results'],
  ['screens', 'On this screen'],
  ['scenes', 'Scenes'],
  ['checklist', 'Checklist'],
  ['deployment', 'Recorded deployment'],
  ['guide-search', 'Questions and glossary'],
  ['read-on', 'Sources'],
];

function Contents() {
  const styles = useStyles2(getStyles);
  const [params] = useSearchParams();
  return (
    <nav aria-label="On this page" className={styles.contents}>
      {contents.map(([id, title]) => (
        <Link key={id} to={{ search: params.toString(), hash: `#${id}` }} replace>
          {title}
        </Link>
      ))}
    </nav>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  guide: css({
    display: 'flex',
    flexDirection: 'column',
    gap: theme.spacing(2),
    fontSize: 'clamp(16px, 1.1vw, 20px)',
    lineHeight: 1.5,
    '& > *': { scrollMarginTop: 'var(--kvbooth-sticky-top, 0px)' },
  }),
  group: css({
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fit, minmax(min(100%, 640px), 1fr))',
    gap: theme.spacing(2),
  }),
  note: css({
    margin: 0,
    paddingLeft: theme.spacing(1.5),
    borderLeft: `4px solid ${theme.colors.info.main}`,
  }),
  contents: css({
    display: 'flex',
    flexWrap: 'wrap',
    gap: theme.spacing(0.5, 2),
    '& a': { color: theme.colors.text.link, textDecoration: 'underline', padding: theme.spacing(0.5, 0) },
    '@media print': { display: 'none' },
  }),
});
