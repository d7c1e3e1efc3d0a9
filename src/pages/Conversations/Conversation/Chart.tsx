import React, { memo } from 'react';
import { css, cx } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { useStyles2 } from '@grafana/ui';

import { milliseconds, percent } from '../../../lib/format';
import { sharedStarter, summary, type Bar } from './model';

/** The drawing's measures, in its own units. */
const SLOT = 72;
const WIDTH = 40;
const HEIGHT = 190;
const ABOVE = 24;
const BELOW = 54;

/** From how many turns on the drawing scrolls, so that its words can be read. */
const MANY = 8;

/** What stands in the place of a bar, or beside it. */
const words: Record<Bar['state'], string> = {
  ok: '',
  failed: '✕ failed',
  cancelled: 'cancelled',
  waiting: 'waiting…',
  streaming: 'now',
  planned: 'planned',
};

/** How long each turn of a conversation waited for its first token. */
export const Chart = memo(
  function Chart({ bars }: { bars: Bar[] }) {
    const styles = useStyles2(getStyles);
    const highest = Math.max(...bars.map(({ ttft }) => ttft ?? 0));
    const width = Math.max(5, bars.length) * SLOT;
    const shared = sharedStarter(bars);
    const many = bars.length > MANY;
    return (
      <figure className={styles.figure}>
        <div className={styles.scroll} tabIndex={many ? 0 : undefined}>
          <svg
            className={styles.svg}
            style={{ maxWidth: width * 1.4, minWidth: many ? width * 0.8 : undefined }}
            viewBox={`0 0 ${width} ${ABOVE + HEIGHT + BELOW}`}
            role="img"
            aria-label={`TTFT by turn: ${bars.map(inWords).join('; ')}`}
          >
            <line className={styles.floor} x1={0} x2={width} y1={ABOVE + HEIGHT} y2={ABOVE + HEIGHT} />
            {bars.map((bar, i) => (
              <Column
                key={bar.turn}
                bar={bar}
                x={(i + 0.5) * SLOT}
                share={highest > 0 ? (bar.ttft ?? 0) / highest : 0}
              />
            ))}
          </svg>
        </div>
        <figcaption className={styles.caption}>
          {summary(bars)}
          {shared && <small>{shared}</small>}
        </figcaption>
      </figure>
    );
  },
  (a, b) => JSON.stringify(a.bars) === JSON.stringify(b.bars)
);

function inWords({ turn, ttft, cached, state }: Bar): string {
  const value = ttft === undefined ? '' : ` ${milliseconds(ttft, 0)}`;
  const share = cached === undefined ? '' : `, ${percent(cached, 0)} of its prompt cached`;
  const word = words[state].replace(/[✕…]/g, '').trim();
  return `turn ${turn}${value}${share}${word && `, ${word}`}`;
}

interface ColumnProps {
  bar: Bar;
  /** Its middle. */
  x: number;
  /** Of the highest bar. */
  share: number;
}

function Column({ bar: { turn, ttft, cached, state }, x, share }: ColumnProps) {
  const styles = useStyles2(getStyles);
  const height = ttft === undefined ? 0 : Math.max(2, share * HEIGHT);
  const top = ABOVE + HEIGHT - height;
  return (
    <g>
      <rect className={cx(styles.bar, styles[state])} x={x - WIDTH / 2} y={top} width={WIDTH} height={height} rx={2} />
      {ttft !== undefined && (
        <text className={styles.value} x={x} y={top - 6}>
          {milliseconds(ttft, 0)}
        </text>
      )}
      <text className={styles.text} x={x} y={ABOVE + HEIGHT + 16}>
        Turn {turn}
      </text>
      <text className={cx(styles.text, state === 'failed' && styles.bad)} x={x} y={ABOVE + HEIGHT + 32}>
        {words[state] || (cached !== undefined && percent(cached, 0))}
      </text>
      {!words[state] && cached !== undefined && (
        <text className={styles.text} x={x} y={ABOVE + HEIGHT + 48}>
          cached
        </text>
      )}
    </g>
  );
}

const getStyles = (theme: GrafanaTheme2) => {
  const { primary, error, info, text, border } = theme.colors;
  return {
    figure: css({ margin: 0 }),
    scroll: css({ overflowX: 'auto' }),
    svg: css({ display: 'block', width: '100%', fontVariantNumeric: 'tabular-nums' }),
    floor: css({ stroke: border.medium }),
    bar: css({ fill: primary.main }),
    ok: css({}),
    failed: css({ fill: error.main }),
    cancelled: css({ fill: text.disabled }),
    waiting: css({}),
    streaming: css({ fill: info.main }),
    planned: css({}),
    value: css({ fill: text.primary, fontSize: 14, fontWeight: 500, textAnchor: 'middle' }),
    text: css({ fill: text.secondary, fontSize: 13, textAnchor: 'middle' }),
    bad: css({ fill: error.text }),
    caption: css({
      marginTop: theme.spacing(1),
      fontSize: theme.typography.h5.fontSize,
      '& small': {
        display: 'block',
        marginTop: theme.spacing(0.5),
        color: text.secondary,
        ...theme.typography.bodySmall,
      },
    }),
  };
};
