import { createContext, Fragment, memo, useContext, useMemo, type PropsWithChildren, type ReactNode } from 'react';
import { cx } from '@emotion/css';
import { Lexer, type MarkedToken, type Token } from 'marked';
import { Link } from 'react-router-dom';

import { DASH } from '../../lib/format';
import { stylesOf } from '../../lib/styles';
import { usePagePath } from '../navigation';
import type { Facts } from './facts';
import type { Figure as FigureValue, Figures } from './figures';
import { FIGURE, quoted, type Block, type Part } from './parse';

/** The facts that texts quote. */
const FactsContext = createContext<Facts>({ figures: {}, holds: new Set() });

export const FactsProvider = FactsContext.Provider;

/** The blocks whose condition holds. */
export function Markdown({ of }: { of: Block[] }) {
  return (
    <>
      {useVisibleBlocks(of).map((block, i) => (
        <BlockView key={i} {...block} />
      ))}
    </>
  );
}

/** Whether figures stand in a text that is read aloud, without their kinds. */
const SpokenContext = createContext(false);

/** Blocks to read aloud, without sentences whose figures have no value. Below them is the kind of each figure. */
export function Spoken({ of }: { of: Block[] }) {
  const styles = useStyles();
  const { figures } = useContext(FactsContext);
  const shown = useVisibleBlocks(of).flatMap((block) => {
    const text = block.text.split('\n').filter((line) => isKnown(line, figures));
    return text.length > 0 ? { ...block, text: text.join('\n') } : [];
  });
  const names = new Set(shown.flatMap(({ text }) => quoted(text)));
  return (
    <>
      <SpokenContext.Provider value>
        <Markdown of={shown} />
      </SpokenContext.Provider>
      {names.size > 0 && (
        <p className={styles.note}>
          Figures:{' '}
          {Array.from(names, (name) => (
            <Fragment key={name}>
              <Value {...figures[name]} />{' '}
            </Fragment>
          ))}
        </p>
      )}
    </>
  );
}

/** Whether all figures that a text quotes have a value. */
function isKnown(text: string, figures: Figures): boolean {
  return quoted(text).every((name) => (figures[name]?.value ?? DASH) !== DASH);
}

function useVisibleBlocks(blocks: Block[]): Block[] {
  const { figures, holds } = useContext(FactsContext);
  return blocks.filter(
    ({ when, text }) => when === undefined || (when === 'known' ? isKnown(text, figures) : holds.has(when))
  );
}

function BlockView({ text, kind }: Block) {
  const styles = useStyles();
  if (kind === 'paragraph' || kind === 'note') {
    return (
      <p className={styles[kind]}>
        <Text of={text} />
      </p>
    );
  }
  const List = kind;
  return (
    <List className={styles.list}>
      {text.split('\n').map((item) => (
        <li key={item}>
          <Text of={item} />
        </li>
      ))}
    </List>
  );
}

const SEPARATOR = '|';

/** Returns the parts whose condition holds, with those of their parts. They are the same until a condition changes. */
export function useVisibleParts(parts: Part[]): Part[] {
  const holds = Array.from(useContext(FactsContext).holds).join(SEPARATOR);
  return useMemo(() => {
    const held = holds.split(SEPARATOR);
    const visible = (of: Part[]): Part[] =>
      of
        .filter(({ needs }) => needs === undefined || held.includes(needs))
        .map((part) => ({ ...part, parts: visible(part.parts) }));
    return visible(parts);
  }, [parts, holds]);
}

/** A text with its figures, emphasis, code and links. HTML in it is shown as text. */
export const Text = memo(function Text({ of }: { of: string }) {
  return <>{inline(Lexer.lexInline(of))}</>;
});

function inline(tokens: Token[]): ReactNode[] {
  return (tokens as MarkedToken[]).map((token, i) => {
    switch (token.type) {
      case 'strong':
        return <strong key={i}>{inline(token.tokens)}</strong>;
      case 'em':
        return <em key={i}>{inline(token.tokens)}</em>;
      case 'codespan':
        return <code key={i}>{token.text}</code>;
      case 'link':
        return token.href.startsWith(PAGE) ? (
          <PageLink key={i} path={token.href.slice(PAGE.length)}>
            {inline(token.tokens)}
          </PageLink>
        ) : (
          <a key={i} href={token.href} target="_blank" rel="noopener noreferrer">
            {inline(token.tokens)}
          </a>
        );
      case 'escape':
      case 'text':
        return <Fragment key={i}>{withFigures(token.text)}</Fragment>;
      default:
        return <Fragment key={i}>{withFigures(token.raw)}</Fragment>;
    }
  });
}

/** The beginning of a link to a page of the app: page://kv-routing. */
const PAGE = 'page://';

function PageLink({ path, children }: PropsWithChildren<{ path: string }>) {
  const pagePath = usePagePath();
  return <Link to={pagePath(path)}>{children}</Link>;
}

function withFigures(text: string): ReactNode[] {
  return text.split(FIGURE).map((piece, i) => (i % 2 === 1 ? <Figure key={i} name={piece} /> : piece));
}

function Figure({ name }: { name: string }) {
  const { value = DASH, word = 'not known' }: Partial<FigureValue> = useContext(FactsContext).figures[name] ?? {};
  return <Value value={value} word={word} />;
}

/** The length from which a figure is styled as text. */
const LONG = 32;

const Value = memo(function Value({ value, word }: FigureValue) {
  const styles = useStyles();
  if (useContext(SpokenContext)) {
    return <span className={cx(styles.figure, styles.value)}>{value}</span>;
  }
  return (
    <span className={styles.figure} data-word={word}>
      <span className={cx(value.length <= LONG && styles.value)}>{value}</span>{' '}
      <small className={styles.word}>{word}</small>
    </span>
  );
});

const useStyles = stylesOf((theme) => ({
  paragraph: { margin: theme.spacing(0, 0, 1), maxWidth: '68ch', textWrap: 'pretty' },
  note: {
    margin: theme.spacing(0, 0, 1),
    maxWidth: '90ch',
    color: theme.colors.text.secondary,
    fontSize: '0.8em',
  },
  list: {
    margin: theme.spacing(0, 0, 1),
    paddingLeft: theme.spacing(3),
    maxWidth: '68ch',
    '& li': { marginBottom: theme.spacing(0.75), breakInside: 'avoid' },
  },
  figure: { fontVariantNumeric: 'tabular-nums' },
  value: { fontWeight: theme.typography.fontWeightBold, whiteSpace: 'nowrap' },
  word: {
    padding: theme.spacing(0, 0.5),
    borderRadius: theme.shape.radius.default,
    background: theme.colors.background.secondary,
    color: theme.colors.text.secondary,
    fontSize: 'max(0.72em, 11px)',
    whiteSpace: 'nowrap',
  },
}));
