import { cx } from '@emotion/css';

import { Button } from '@grafana/ui';

import type { Live } from '../../client';
import { ModeSwitch, Taken } from '../../components/Controls';
import { levelText } from '../../lib/level';
import { LOW, stylesOf } from '../../lib/styles';
import { knownOf } from './model';
import type { Operate } from './useOperate';

interface PhoneControlsProps {
  live: Live;
  operate: Operate;
  /** Whether they are shown where there is little height. */
  isOpen: boolean;
}

/** The operator's buttons for small screens, within reach of the thumb. */
export function PhoneControls({ live, operate, isOpen }: PhoneControlsProps) {
  const styles = useStyles();
  const known = knownOf(live);
  if (!known || !operate.me?.canOperate) {
    return null;
  }
  const { state } = known.lane;
  const off = live.lane === undefined;
  const { sweep } = state;
  const stopped = state.phase === 'stopped' && !sweep;
  return (
    <section className={cx(styles.controls, !isOpen && styles.folded)} aria-label="Workload controls">
      {sweep && <Taken sweep={sweep} />}
      <div className={styles.modes} hidden={sweep !== undefined}>
        <ModeSwitch
          arm={state.arm}
          mode={state.mode}
          speculation={state.speculation}
          driver={state.driver}
          modes={state.modes}
          disabled={off || state.phase === 'switching'}
          onChange={operate.ask}
        />
      </div>
      <div className={styles.row}>
        <Button
          variant="secondary"
          icon="minus"
          aria-label="Fewer conversations"
          disabled={off || sweep !== undefined}
          onClick={() => operate.step(-1)}
        />
        <output aria-label="Concurrency">{levelText(operate.concurrency)}</output>
        <Button
          variant="secondary"
          icon="plus"
          aria-label="More conversations"
          disabled={off || sweep !== undefined}
          onClick={() => operate.step(1)}
        />
        <Button
          variant="secondary"
          icon="sync"
          aria-label="Measure anew"
          tooltip="Measure anew: earlier turns no longer count"
          disabled={off || sweep !== undefined || state.phase !== 'running'}
          onClick={operate.measure}
        />
        <Button
          className={styles.start}
          variant={stopped ? 'primary' : 'secondary'}
          icon={stopped ? 'play' : 'square-shape'}
          disabled={off}
          onClick={operate.startStop}
        >
          {stopped ? 'Start' : 'Stop'}
        </Button>
      </div>
    </section>
  );
}

/** The least size of a touch target, in pixels, with some reserve. */
const TARGET = 48;

const useStyles = stylesOf((theme) => ({
  controls: {
    position: 'sticky',
    bottom: 0,
    display: 'grid',
    gap: theme.spacing(1),
    margin: 'auto -1em 0',
    padding: theme.spacing(1.5, 1.5, 2),
    borderTop: `1px solid ${theme.colors.border.medium}`,
    background: theme.colors.background.elevated,
    fontSize: theme.typography.body.fontSize,
    '& button': { minHeight: TARGET, minWidth: TARGET, justifyContent: 'center' },
    // A large screen is a display, and is operated by keys.
    '@media (min-width: 601px) and (min-height: 501px)': { display: 'none' },
  },
  folded: { [LOW]: { display: 'none' } },
  modes: { display: 'grid', gap: theme.spacing(1), '&[hidden]': { display: 'none' } },
  row: {
    display: 'grid',
    gridTemplateColumns: 'auto 1fr auto auto 2fr',
    alignItems: 'center',
    gap: theme.spacing(1),
    '& output': {
      textAlign: 'center',
      fontSize: theme.typography.h3.fontSize,
      fontVariantNumeric: 'tabular-nums',
      fontWeight: theme.typography.fontWeightMedium,
    },
  },
  start: { width: '100%' },
}));
