import { memo } from 'react';

import type { GrafanaTheme2 } from '@grafana/data';
import { useTheme2 } from '@grafana/ui';

import { Chart, type ChartLine } from '../../../components/Chart';
import { milliseconds, MS, percent } from '../../../lib/format';
import { stylesOf, wideDrawing } from '../../../lib/styles';
import { sharedStarter, summary, type Bar } from './model';

/** The least and the greatest width of a bar with its labels, in rem. */
const LEAST = 4;
const MOST = 8;

/** The number of turns from which the chart scrolls, so that its labels stay legible. */
const MANY = 8;

/** The text in place of a bar, or beside it. */
const stateWords: Record<Bar['state'], string> = {
  ok: '',
  failed: '✕ failed',
  cancelled: 'cancelled',
  waiting: 'waiting…',
  streaming: 'now',
  planned: 'planned',
};

/** A bar for each turn of a conversation: the time to its first token. */
export const TurnBars = memo(
  function TurnBars({ bars }: { bars: Bar[] }) {
    const styles = useStyles();
    const theme = useTheme2();
    const shared = sharedStarter(bars);
    const many = bars.length > MANY;
    const width = Math.max(5, bars.length);
    return (
      <figure className={styles.figure}>
        <div className={styles.scroll} tabIndex={many ? 0 : undefined}>
          <div
            className={styles.chart}
            style={{ maxWidth: `${MOST * width}rem`, minWidth: many ? `${LEAST * width}rem` : undefined }}
          >
            <Chart
              label="TTFT by turn"
              words={`: ${bars.map(inWords).join('; ')}`}
              x={{ levels: bars.map(({ turn }) => turn), words: bars.map(below) }}
              lines={linesOf(bars, theme)}
              format={MS}
            />
          </div>
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

/** A series for each color. Turns without a token have no bar, but keep their place. */
function linesOf(bars: Bar[], { colors }: GrafanaTheme2): ChartLine[] {
  const all: Record<Bar['state'], string> = {
    ok: colors.primary.main,
    failed: colors.error.main,
    cancelled: colors.text.disabled,
    waiting: colors.primary.main,
    streaming: colors.info.main,
    planned: colors.primary.main,
  };
  return Array.from(new Set(bars.map(({ state }) => state))).map((state) => ({
    key: state,
    name: 'TTFT',
    tone: 'unknown',
    color: all[state],
    look: 'bars',
    points: bars.flatMap((bar): ChartLine['points'] => (bar.state === state ? [[bar.turn, bar.ttft]] : [])),
  }));
}

function inWords({ turn, ttft, cached, state }: Bar): string {
  const value = ttft === undefined ? '' : ` ${milliseconds(ttft)}`;
  const share = cached === undefined ? '' : `, ${percent(cached)} of its prompt cached`;
  const word = stateWords[state].replace(/[✕…]/g, '').trim();
  return `turn ${turn}${value}${share}${word && `, ${word}`}`;
}

/** Returns the labels below a bar, line by line. */
function below({ turn, cached, state }: Bar): string {
  const share = cached === undefined ? '' : `${percent(cached)}\ncached`;
  return `Turn ${turn}\n${stateWords[state] || share}`;
}

const useStyles = stylesOf((theme) => ({
  figure: { margin: 0 },
  scroll: wideDrawing,
  chart: { height: '18rem', fontSize: theme.typography.bodySmall.fontSize },
  caption: {
    marginTop: theme.spacing(1),
    fontSize: theme.typography.h5.fontSize,
    '& small': {
      display: 'block',
      marginTop: theme.spacing(0.5),
      color: theme.colors.text.secondary,
      ...theme.typography.bodySmall,
    },
  },
}));
