import React, { createContext, memo, useContext, useMemo, type PropsWithChildren } from 'react';
import { css, cx } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import type { Paragraph } from './content/types';
import type { Condition, Facts } from './facts';
import { DASH } from '../../lib/format';
import type { Figure as FigureValue, Figures, Source } from './figures';
import { pieces, quoted, textOf } from './text';

const FiguresContext = createContext<Figures>({});
/** Conditions as one string, so that those who depend on them are drawn anew only when they change. */
const HoldsContext = createContext('');

const SEPARATOR = '|';

/** Gives all below it the facts that texts quote. */
export function FactsProvider({ facts, children }: PropsWithChildren<{ facts: Facts }>) {
  const holds = Array.from(facts.holds).join(SEPARATOR);
  return (
    <FiguresContext.Provider value={facts.figures}>
      <HoldsContext.Provider value={holds}>{children}</HoldsContext.Provider>
    </FiguresContext.Provider>
  );
}

/** The paragraphs that stand now. */
export function Paragraphs({ of }: { of: Paragraph[] }) {
  const styles = useStyles2(getStyles);
  const holds = useHolds();
  return (
    <>
      {of.map((paragraph, i) => {
        const text = textOf(paragraph, holds);
        return (
          text !== undefined && (
            <p key={i} className={styles.paragraph}>
              <Text of={text} />
            </p>
          )
        );
      })}
    </>
  );
}

/** What holds now. */
export function useHolds(): ReadonlySet<Condition> {
  const holds = useContext(HoldsContext);
  return useMemo(() => new Set(holds.split(SEPARATOR) as Condition[]), [holds]);
}

/** A text with its figures. */
export const Text = memo(function Text({ of }: { of: string }) {
  return (
    <>{pieces(of).map((piece, i) => ('figure' in piece ? <Figure key={i} name={piece.figure} /> : piece.words))}</>
  );
});

function Figure({ name }: { name: string }) {
  const { value = DASH, word = 'not known' }: Partial<FigureValue> = useContext(FiguresContext)[name] ?? {};
  return <Value value={value} word={word} />;
}

/** Longer than this, a figure is a text, and set like one. */
const LONG = 32;

const Value = memo(function Value({ value, word }: { value: string; word: string }) {
  const styles = useStyles2(getStyles);
  return (
    <span className={styles.figure} data-word={word}>
      <span className={cx(value.length <= LONG && styles.value)}>{value}</span>{' '}
      <small className={styles.word}>{word}</small>
    </span>
  );
});

/** Where the published figures of some paragraphs come from. */
export function useSources(of: Paragraph[]): Source[] {
  const figures = useContext(FiguresContext);
  const names = useMemo(() => of.flatMap((one) => quoted(typeof one === 'string' ? one : one.text)), [of]);
  const sources = names.flatMap((name) => figures[name]?.source ?? []);
  return sources.filter(({ url }, i) => sources.findIndex((source) => source.url === url) === i);
}

const getStyles = (theme: GrafanaTheme2) => ({
  paragraph: css({ margin: theme.spacing(0, 0, 1), maxWidth: '68ch', textWrap: 'pretty' }),
  figure: css({ fontVariantNumeric: 'tabular-nums' }),
  value: css({ fontWeight: theme.typography.fontWeightBold, whiteSpace: 'nowrap' }),
  word: css({
    padding: theme.spacing(0, 0.5),
    borderRadius: theme.shape.radius.default,
    background: theme.colors.background.secondary,
    color: theme.colors.text.secondary,
    fontSize: 'max(0.72em, 11px)',
    whiteSpace: 'nowrap',
  }),
});
