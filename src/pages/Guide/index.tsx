import {
  memo,
  useDeferredValue,
  useEffect,
  useMemo,
  useRef,
  useState,
  type KeyboardEvent,
  type ReactNode,
} from 'react';
import { cx } from '@emotion/css';
import { Link, useLocation } from 'react-router-dom';

import { Alert, Icon, Input } from '@grafana/ui';

import { useBaselines, useLive, type Live } from '../../client';
import { DeploymentTable } from '../../components/Deployment';
import { Loading } from '../../components/Loading';
import { Section } from '../../components/Section';
import { lastKnown } from '../../lib/known';
import { recordedTable } from '../../lib/recorded';
import { COLUMN, PLAIN_LIST, stylesOf } from '../../lib/styles';
import { targetKind, targetNotes } from '../../lib/target';
import { useVendor, type Vendor } from '../../vendor';
import { LANE } from '../lane';
import { chaptersOf } from './content';
import { publishedFigures } from './content/published';
import { buildFacts } from './facts';
import { FactsProvider, Markdown, Spoken, Text, useVisibleParts } from './Markdown';
import type { Part } from './parse';
import { countEntries, search } from './search';
import { TurnProfile } from './TurnProfile';

/** The presenter's guide: what to say, what the screens show, questions and the glossary, with live figures. */
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

/** The guide of one vendor, with the facts that it quotes. */
function VendorGuide({ live, vendor }: { live: Live; vendor: Vendor }) {
  const chapters = useMemo(() => chaptersOf(vendor), [vendor]);
  const published = useMemo(() => publishedFigures(vendor), [vendor]);
  const { value: baselines } = useBaselines(lastKnown(live, LANE)?.settings.slo);
  const facts = useMemo(() => buildFacts({ live, baselines, published }), [live, baselines, published]);
  const recorded = recordedTable(baselines, live.lane);
  const tables = {
    turns: <TurnProfile live={live.lane?.ttft_by_turn} recorded={recorded} />,
    deployment: <DeploymentTable live={lastKnown(live, LANE)?.lane.target.deployment} recorded={recorded} />,
  };
  return (
    <FactsProvider value={facts}>
      <Chapters of={chapters} note={targetNotes[targetKind(live.lane, undefined)]} tables={tables} />
    </FactsProvider>
  );
}

interface ChaptersProps {
  of: Part[];
  /** What all live figures have in common, such as that the cluster is simulated. */
  note: string | undefined;
  /** The tables below chapters, by the chapters' ids. */
  tables: Record<string, ReactNode>;
}

/** The table of contents and the search, and beside them the chapter of the address or what was found. */
function Chapters({ of, note, tables }: ChaptersProps) {
  const styles = useStyles();
  const chapters = useVisibleParts(of);
  const [query, setQuery] = useState('');
  const wanted = useDeferredValue(query.trim());
  const isSearched = wanted !== '';
  const found = useMemo(() => search(wanted, chapters), [wanted, chapters]);
  const target = decodeURIComponent(useLocation().hash.slice(1));
  const open = chapters.find((one) => [one, ...one.parts].some(({ id }) => id === target)) ?? chapters[0];
  useEffect(() => {
    const element = document.getElementById(target);
    if (element && (target !== open.id || element.getBoundingClientRect().top < 0)) {
      element.scrollIntoView({ block: 'start' });
    }
  }, [target, open.id, isSearched]);
  const clear = () => setQuery('');
  return (
    <div className={styles.guide}>
      <div className={styles.sidebar}>
        <SearchBox
          query={query}
          onChange={setQuery}
          count={`${countEntries(found)} of ${countEntries(chapters)} entries`}
        />
        <Contents chapters={chapters} open={isSearched ? undefined : open} onOpen={clear} />
      </div>
      <div className={styles.text} id={isSearched ? undefined : open.id}>
        {note && <p className={styles.note}>{note}</p>}
        {isSearched && found.length === 0 && <p>No matches. Try fewer or different words.</p>}
        {(isSearched ? found : [open]).map((chapter) => (
          <Chapter key={chapter.id} of={chapter} onOpen={clear}>
            {tables[chapter.id]}
          </Chapter>
        ))}
      </div>
    </div>
  );
}

interface SearchBoxProps {
  query: string;
  onChange(query: string): void;
  count: string;
}

function SearchBox({ query, onChange, count }: SearchBoxProps) {
  const styles = useStyles();
  const clear = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && query !== '') {
      event.stopPropagation();
      onChange('');
    }
  };
  return (
    <div role="search">
      <Input
        type="search"
        className={styles.input}
        aria-label="Search the guide"
        placeholder="Search the guide"
        prefix={<Icon name="search" aria-hidden />}
        value={query}
        onChange={(event) => onChange(event.currentTarget.value)}
        onKeyDown={clear}
      />
      <span role="status" className={styles.count}>
        {count}
      </span>
    </div>
  );
}

interface ContentsProps {
  chapters: Part[];
  /** The chapter whose entries are listed. */
  open: Part | undefined;
  onOpen(): void;
}

/** The table of contents, which stays in view. */
const Contents = memo(function Contents({ chapters, open, onOpen }: ContentsProps) {
  const styles = useStyles();
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [open?.id]);
  return (
    <nav aria-label="On this page" className={styles.contents} tabIndex={0} ref={nav}>
      <ul>
        {chapters.map((chapter) => (
          <li key={chapter.id}>
            <PartLink of={chapter} onOpen={onOpen} isOpen={chapter.id === open?.id} />
            {chapter.id === open?.id && chapter.parts.length > 0 && (
              <ul>
                {chapter.parts.map((part) => (
                  <li key={part.id}>
                    <PartLink of={part} onOpen={onOpen} />
                  </li>
                ))}
              </ul>
            )}
          </li>
        ))}
      </ul>
    </nav>
  );
});

function PartLink({ of: { id, title }, isOpen, onOpen }: { of: Part; isOpen?: boolean; onOpen(): void }) {
  const { search: params } = useLocation();
  return (
    <Link to={{ search: params, hash: `#${id}` }} replace aria-current={isOpen || undefined} onClick={onOpen}>
      {title}
    </Link>
  );
}

interface ChapterProps {
  of: Part;
  onOpen(): void;
  children: ReactNode;
}

/** A chapter with its entries. Its first paragraph says what it is about. */
function Chapter({ of: { title, layout, blocks, parts }, onOpen, children }: ChapterProps) {
  const styles = useStyles();
  const [info, ...text] = blocks;
  return (
    <Section title={title} info={<Text of={info.text} />}>
      <div className={cx(layout === 'spoken' && styles.spoken)}>
        {layout === 'spoken' ? <Spoken of={text} /> : <Markdown of={text} />}
        <Entries of={parts} areCards={layout === 'cards'} onOpen={onOpen} />
        {children}
      </div>
    </Section>
  );
}

interface EntriesProps {
  of: Part[];
  areCards: boolean;
  onOpen(): void;
}

/** The entries of a chapter. Each has an address, the parts below it have none. */
const Entries = memo(function Entries({ of, areCards, onOpen }: EntriesProps) {
  const styles = useStyles();
  const cards = (parts: Part[]) =>
    areCards && parts.every((part) => part.parts.length === 0) ? styles.cards : styles.list;
  return (
    <div className={cards(of)}>
      {of.map((entry) => (
        <article key={entry.id} id={entry.id} aria-label={entry.title} className={styles.entry}>
          <h3>
            <PartLink of={entry} onOpen={onOpen} />
          </h3>
          <Markdown of={entry.blocks} />
          <div className={cards(entry.parts)}>
            {entry.parts.map(({ title, blocks }) => (
              <div key={title} className={styles.part}>
                <h4>{title}</h4>
                <Markdown of={blocks} />
              </div>
            ))}
          </div>
        </article>
      ))}
    </div>
  );
});

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
      [wide]: { gridTemplateColumns: '17em minmax(0, 1fr)' },
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
      // Less than the window, or the padding below the text would push its top out at the end of the page.
      [wide]: { maxHeight: 'calc(100vh - var(--kvbooth-sticky-top, 0px) - 32px)', background: 'none' },
      '@media (max-height: 500px)': { position: 'static' },
      '@media print': { display: 'none' },
    },
    input: { '& input': { fontSize: 'inherit' } },
    count: {
      color: theme.colors.text.secondary,
      fontSize: theme.typography.bodySmall.fontSize,
      fontVariantNumeric: 'tabular-nums',
    },
    text: {
      ...COLUMN,
      gap: theme.spacing(2),
      minWidth: 0,
      scrollMarginTop: 'var(--kvbooth-sticky-top, 0px)',
      '& :is(p, li) > a': { color: theme.colors.text.link, textDecoration: 'underline' },
    },
    note: { margin: 0, paddingLeft: theme.spacing(1.5), borderLeft: `4px solid ${theme.colors.info.main}` },
    spoken: { fontSize: '1.15em' },
    contents: {
      overflow: 'auto',
      minHeight: 0,
      '& ul': { ...PLAIN_LIST, display: 'flex', [wide]: { display: 'block' } },
      '& li > ul': {
        display: 'none',
        margin: theme.spacing(0, 0, 1, 2),
        fontSize: '0.875em',
        [wide]: { display: 'block' },
      },
      '& a': {
        display: 'flex',
        alignItems: 'center',
        minHeight: 44,
        padding: theme.spacing(0.5, 1.5),
        borderBottom: '3px solid transparent',
        color: theme.colors.text.secondary,
        whiteSpace: 'nowrap',
        [wide]: { minHeight: 32, borderBottom: 0, borderLeft: '3px solid transparent', whiteSpace: 'normal' },
      },
      '& a:hover': { background: theme.colors.action.hover, color: theme.colors.text.primary },
      '& a:focus-visible': { outline: `2px solid ${theme.colors.primary.border}`, outlineOffset: -2 },
      '& a[aria-current]': {
        borderColor: theme.colors.primary.border,
        color: theme.colors.text.primary,
        fontWeight: theme.typography.fontWeightMedium,
      },
    },
    cards: {
      display: 'grid',
      gridTemplateColumns: 'repeat(auto-fill, minmax(min(100%, 19em), 1fr))',
      gap: theme.spacing(2, 3),
    },
    list: { ...COLUMN, gap: theme.spacing(3) },
    entry: {
      breakInside: 'avoid',
      scrollMarginTop: 'calc(var(--kvbooth-sticky-top, 0px) + 150px)',
      [wide]: { scrollMarginTop: 'calc(var(--kvbooth-sticky-top, 0px) + 8px)' },
      '& > h3': { margin: theme.spacing(0, 0, 0.5), fontSize: '1.1em', fontWeight: theme.typography.fontWeightBold },
      '& > h3 > a': { color: theme.colors.text.primary, '&:hover': { textDecoration: 'underline' } },
    },
    part: {
      breakInside: 'avoid',
      '& > h4': { margin: 0, fontSize: 'inherit', color: theme.colors.text.secondary },
    },
  };
});
