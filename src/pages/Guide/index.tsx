import { useDeferredValue, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { Link, useLocation, useSearchParams } from 'react-router-dom';

import { Alert } from '@grafana/ui';

import { useBaselines, useLive, type Baseline, type Live } from '../../client';
import { DeploymentTable } from '../../components/Deployment';
import { Loading } from '../../components/Loading';
import { Section } from '../../components/Section';
import { lastKnown } from '../../lib/known';
import { recordedTable } from '../../lib/recorded';
import { COLUMN, stylesOf } from '../../lib/styles';
import { targetKind, targetNotes } from '../../lib/target';
import { LANE } from '../lane';
import { useChoice } from '../useChoice';
import { Checklist } from './Checklist';
import { useVendor, type Vendor } from '../../vendor';
import { contentOf, type Content } from './content';
import type { Visitor } from './content/visitors';
import { buildFacts } from './facts';
import { FactsProvider } from './Markdown';
import { Reference } from './Reference';
import { ReadOn } from './References';
import { Scenes } from './Scenes';
import { Screens } from './Screens';
import { search } from './search';
import { SearchBox } from './SearchBox';
import { Pitch, PlatformStory, Results, Takeaways } from './Story';
import { useProgress } from './useProgress';
import { Visitors } from './Visitors';

/** The name of the visitor's kind in the address. */
const VISITOR = 'visitor';

/** The presenter's guide: visitors, the flow, questions and the glossary. */
export default function Guide() {
  const live = useLive(LANE);
  const { value: vendor, problem } = useVendor(LANE);
  if (!vendor) {
    return problem ? (
      <Alert severity="warning" title="The guide failed to load">
        {problem.message} Retrying every few seconds.
      </Alert>
    ) : (
      <Loading text="Opening presenter’s guide" bars={8} />
    );
  }
  return <VendorGuide live={live} vendor={vendor} />;
}

/** The guide of one vendor: its contents and the search, and the open topic. */
function VendorGuide({ live, vendor }: { live: Live; vendor: Vendor }) {
  const styles = useStyles();
  const content = useMemo(() => contentOf(vendor), [vendor]);
  const { value: baselines } = useBaselines(lastKnown(live, LANE)?.settings.slo);
  const facts = useMemo(
    () => buildFacts({ live, baselines, published: content.published }),
    [live, baselines, content]
  );
  const [kind, choose] = useChoice(VISITOR);
  const visitor = content.visitors.find(({ id }) => id === kind);
  const [query, setQuery] = useState('');
  const settledQuery = useDeferredValue(query.trim());
  const found = useMemo(() => search(settledQuery, content.groups, content.glossary.parts), [settledQuery, content]);
  const watched = useProgress(LANE, baselines);
  const top = useRef<HTMLDivElement>(null);
  const open = () => {
    setQuery('');
    if (top.current && top.current.getBoundingClientRect().top < 0) {
      top.current.scrollIntoView({ block: 'start' });
    }
  };
  const topic = topicOf(useLocation().hash);
  const shown = settledQuery === '' ? topic : QUESTIONS;
  const note = targetNotes[targetKind(live.lane, undefined)];
  const parts: Record<Topic, () => ReactNode> = {
    visitors: () => <FirstMessage content={content} visitor={visitor} onChoose={(id) => choose(id || undefined)} />,
    takeaways: () => <Takeaways content={content} visitor={visitor} />,
    results: () => <Results />,
    screens: () => <Screens />,
    scenes: () => <Scenes />,
    checklist: () => <Checklist live={live} watched={watched} />,
    deployment: () => <Deployment live={live} baselines={baselines} />,
    questions: () => (
      <Reference glossary={content.glossary} found={found} visitor={visitor} isFiltered={settledQuery !== ''} />
    ),
    'read-on': () => <ReadOn of={content.readOn} />,
  };
  return (
    <FactsProvider facts={facts}>
      <div className={styles.guide} ref={top} onKeyDown={moveByArrows}>
        <div className={styles.sidebar}>
          <SearchBox
            query={query}
            onChange={setQuery}
            found={found}
            questions={content.groups.reduce((sum, group) => sum + group.questions.length, 0)}
            terms={content.glossary.parts.length}
          />
          <Contents shown={shown} onOpen={open} />
        </div>
        <div className={styles.topic} id={shown}>
          {note && <p className={styles.note}>{note}</p>}
          {parts[shown]()}
        </div>
      </div>
    </FactsProvider>
  );
}

interface FirstMessageProps {
  content: Content;
  visitor: Visitor | undefined;
  onChoose(id: string): void;
}

/** The visitor's kind, and the first message for it. */
function FirstMessage({ content, visitor, onChoose }: FirstMessageProps) {
  const styles = useStyles();
  const [First, Second] = visitor?.story === 'first' ? [PlatformStory, Pitch] : [Pitch, PlatformStory];
  return (
    <>
      <Visitors visitors={content.visitors} visitor={visitor} onChoose={onChoose} />
      <div className={styles.group}>
        <First content={content} visitor={visitor} />
        <Second content={content} visitor={visitor} />
      </div>
    </>
  );
}

function Deployment({ live, baselines }: { live: Live; baselines: Baseline[] | undefined }) {
  return (
    <Section
      title="The recorded deployment"
      info={
        'Hardware, versions and settings of the runs behind the recorded figures, as documented, ' +
        'next to the live deployment.'
      }
    >
      <DeploymentTable
        live={lastKnown(live, LANE)?.lane.target.deployment}
        recorded={recordedTable(baselines, live.lane)}
      />
    </Section>
  );
}

const topics = {
  visitors: 'Visitor and pitch',
  takeaways: 'Take home',
  results: 'Results',
  screens: 'On this screen',
  scenes: 'Scenes',
  checklist: 'Checklist',
  deployment: 'Recorded deployment',
  questions: 'Questions and glossary',
  'read-on': 'Sources',
};

type Topic = keyof typeof topics;

/** The topic that the search covers. */
const QUESTIONS = 'questions';

/** Returns the topic that an address names or points into; the first one for any other address. */
function topicOf(hash: string): Topic {
  const id = hash.slice(1);
  if (/^(question|term)-/.test(id)) {
    return QUESTIONS;
  }
  return Object.hasOwn(topics, id) ? (id as Topic) : 'visitors';
}

/** The navigation between topics, which stays in view. */
function Contents({ shown, onOpen }: { shown: Topic; onOpen(): void }) {
  const styles = useStyles();
  const [params] = useSearchParams();
  return (
    <nav aria-label="On this page" className={styles.contents} tabIndex={0}>
      {Object.entries(topics).map(([id, title]) => (
        <Link
          key={id}
          to={{ search: params.toString(), hash: `#${id}` }}
          replace
          aria-current={id === shown ? 'true' : undefined}
          onClick={onOpen}
        >
          {title}
        </Link>
      ))}
    </nav>
  );
}

/** The keys Up and Down move through the search's results and back. */
function moveByArrows(event: KeyboardEvent<HTMLDivElement>) {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
  if (step === 0) {
    return;
  }
  const stops = Array.from(event.currentTarget.querySelectorAll<HTMLElement>('[type="search"], [data-result]'));
  const at = stops.findIndex((stop) => stop === document.activeElement);
  const next = at < 0 ? undefined : stops[at + step];
  if (next) {
    event.preventDefault();
    next.focus();
  }
}

const useStyles = stylesOf((theme) => {
  const wide = '@media (min-width: 1000px)';
  return {
    guide: {
      display: 'grid',
      gridTemplateColumns: 'minmax(0, 1fr)',
      alignItems: 'start',
      gap: theme.spacing(1, 3),
      fontSize: 'clamp(16px, 1.1vw, 20px)',
      lineHeight: 1.5,
      scrollMarginTop: 'var(--kvbooth-sticky-top, 0px)',
      [wide]: { gridTemplateColumns: '15em minmax(0, 1fr)' },
    },
    sidebar: {
      position: 'sticky',
      top: 'var(--kvbooth-sticky-top, 0px)',
      zIndex: 1,
      ...COLUMN,
      gap: theme.spacing(1),
      minWidth: 0,
      padding: theme.spacing(1, 0),
      background: theme.colors.background.canvas,
      [wide]: { background: 'none' },
      '@media print': { display: 'none' },
    },
    topic: { ...COLUMN, gap: theme.spacing(2), minWidth: 0 },
    group: {
      display: 'grid',
      gridTemplateColumns: 'repeat(auto-fit, minmax(min(100%, 640px), 1fr))',
      gap: theme.spacing(2),
    },
    note: {
      margin: 0,
      paddingLeft: theme.spacing(1.5),
      borderLeft: `4px solid ${theme.colors.info.main}`,
    },
    contents: {
      display: 'flex',
      overflowX: 'auto',
      '& a': {
        display: 'flex',
        alignItems: 'center',
        minHeight: 44,
        padding: theme.spacing(0.5, 1.5),
        borderBottom: '3px solid transparent',
        color: theme.colors.text.secondary,
        whiteSpace: 'nowrap',
      },
      '& a:hover': { background: theme.colors.action.hover, color: theme.colors.text.primary },
      '& a:focus-visible': { outline: `2px solid ${theme.colors.primary.border}`, outlineOffset: -2 },
      '& a[aria-current]': {
        borderColor: theme.colors.primary.border,
        color: theme.colors.text.primary,
        fontWeight: theme.typography.fontWeightMedium,
      },
      [wide]: {
        flexDirection: 'column',
        '& a': { minHeight: 36, borderBottom: 0, borderLeft: '3px solid transparent', whiteSpace: 'normal' },
      },
    },
  };
});
