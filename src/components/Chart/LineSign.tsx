import { cx } from '@emotion/css';

import { useTheme2 } from '@grafana/ui';

import { PRINTED, stylesOf } from '../../lib/styles';
import { lineColor } from './tones';
import type { Look, Tone } from './types';

interface LineSignProps {
  /** By default, the color of the text. */
  tone?: Tone;
  look?: Look;
  /** Replaces the tone's color. */
  color?: string;
}

/** A sample of a line for a legend. */
export function LineSign({ tone, look = 'solid', color }: LineSignProps) {
  const styles = useStyles();
  const theme = useTheme2();
  const own = tone ? lineColor(theme, { tone, color }) : color;
  return <span className={cx(styles.sign, styles[look])} style={{ color: own }} aria-hidden="true" />;
}

const useStyles = stylesOf(() => ({
  sign: { display: 'inline-block', verticalAlign: 'middle' },
  solid: { width: '1.5em', height: 3, background: 'currentColor', ...PRINTED },
  dashed: { width: '1.5em', borderTop: '2px dashed currentColor' },
  dotted: { width: '1.5em', borderTop: '3px dotted currentColor' },
  rings: { width: 9, height: 9, border: '2px solid currentColor', borderRadius: '50%' },
  bars: { width: 9, height: 9, background: 'currentColor', ...PRINTED },
}));
