import React, { useState } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { ConfirmModal, IconButton, Modal, useStyles2 } from '@grafana/ui';

import { useLive, type Live } from '../../client';
import { FullScreenButton } from '../../components/Present';
import { modeText } from '../../lib/names';
import { useKeys } from '../../lib/useKeys';
import { hasTwin, LANE } from '../lane';
import StageBoth from '../SideBySide/StageBoth';
import { useChoice } from '../useChoice';
import { Bars, TurnBars } from './Bars';
import { FigureView } from './FigureView';
import { Head } from './Head';
import { keysOf } from './keys';
import { knownOf, toFigures, troubles } from './model';
import { PhoneControls } from './PhoneControls';
import { useHistory } from './useHistory';
import { useLeave } from './useLeave';
import { useOperate, type Operate } from './useOperate';

/**
 * One screen for a crowd: what runs, two large figures beside the baseline's with their
 * last ten minutes, TTFT by turn, and the workers; where two routers serve the same conversations, a
 * further view shows both. It is operated by keys; on a phone, by thumb.
 */
export default function Stage() {
  const styles = useStyles2(getStyles);
  const live = useLive(LANE);
  const operate = useOperate(live);
  const [help, setHelp] = useState(false);
  const [view, setView] = useChoice('view');
  const twin = hasTwin(live);
  const both = twin && view === BOTH;
  const leave = useLeave(() => {
    const open = help || operate.asked !== undefined;
    setHelp(false);
    operate.answer(false);
    return open;
  });
  useKeys({
    ' ': operate.startStop,
    k: () => operate.askMode('kv'),
    r: () => operate.askMode('round_robin'),
    ArrowUp: () => operate.step(1),
    ArrowDown: () => operate.step(-1),
    ...(twin && { t: () => setView(both ? undefined : BOTH) }),
    '?': () => setHelp(true),
    Escape: leave,
  });
  return (
    <div className={styles.stage}>
      {!both && <Head live={live} concurrency={operate.concurrency} />}
      <Trouble words={[...troubles(live), operate.notice]} />
      {both ? <StageBoth /> : <OneRouter live={live} />}
      <PhoneControls live={live} operate={operate} />
      <div className={styles.tools}>
        <FullScreenButton />
        {twin && (
          <IconButton
            name="columns"
            size="xl"
            aria-label="Side by side"
            aria-pressed={both}
            tooltip="Side by side (T)"
            onClick={() => setView(both ? undefined : BOTH)}
          />
        )}
        <IconButton name="keyboard" size="xl" aria-label="Keys" tooltip="Keys (?)" onClick={() => setHelp(true)} />
        <IconButton name="times" size="xl" aria-label="Leave" tooltip="Leave (Esc)" onClick={leave} />
      </div>
      {help && <KeyList twin={twin} onClose={() => setHelp(false)} />}
      <Confirmation operate={operate} />
    </div>
  );
}

/** What the address calls the view of both routers. */
const BOTH = 'both';

/** Two large figures with their last ten minutes, TTFT by turn, and the workers. */
function OneRouter({ live }: { live: Live }) {
  const styles = useStyles2(getStyles);
  const points = useHistory(live);
  const known = knownOf(live);
  const now = known && Date.parse(known.time);
  return (
    <>
      <div className={styles.figures}>
        {toFigures(known, live.lane !== undefined).map((figure) => (
          <FigureView
            key={figure.name}
            figure={figure}
            points={points}
            now={now}
            isLive={live.lane !== undefined}
            slo={figure.value === 'ttft_p95' ? known?.settings.slo.ttft : undefined}
          />
        ))}
      </div>
      <TurnBars lane={live.lane} />
      <Bars cluster={live.lane?.cluster} />
    </>
  );
}

/** Every sentence on what is wrong: large, since it says why a figure is missing. */
function Trouble({ words }: { words: Array<string | undefined> }) {
  const styles = useStyles2(getStyles);
  return (
    <div role="alert" className={styles.trouble}>
      {words.map((sentence) => sentence && <div key={sentence}>{sentence}</div>)}
    </div>
  );
}

/** Asks for the operator's word before the mode is changed: Enter gives it, Escape takes the wish back. */
function Confirmation({ operate: { asked, answer } }: { operate: Operate }) {
  if (!asked) {
    return null;
  }
  const { mode, speculation = 'not_recorded' } = asked;
  return (
    <ConfirmModal
      isOpen
      title={`Change to ${modeText({ mode, speculation })}?`}
      body="The workload stops, the mode changes, and the workload starts again at the same concurrency with cold caches. The figures settle again, which takes a minute or more."
      confirmText="Change (Enter)"
      confirmButtonVariant="primary"
      dismissText="Cancel (Esc)"
      onConfirm={() => answer(true)}
      onDismiss={() => answer(false)}
    />
  );
}

function KeyList({ twin, onClose }: { twin: boolean; onClose(): void }) {
  const styles = useStyles2(getStyles);
  return (
    <Modal title="Keys of the stage view" isOpen onDismiss={onClose}>
      <dl className={styles.keys}>
        {keysOf(twin).map(([keys, does]) => (
          <React.Fragment key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </React.Fragment>
        ))}
      </dl>
    </Modal>
  );
}

const getStyles = (theme: GrafanaTheme2) => ({
  stage: css({
    // All sizes are multiples of this one: a hundredth of the width at 16:9, never too small to be read.
    fontSize: 'max(10px, min(1vw, 1.7778vh))',
    position: 'relative',
    display: 'flex',
    flexDirection: 'column',
    gap: '0.8em',
    minHeight: '100dvh',
    boxSizing: 'border-box',
    padding: '1em',
    '@media (max-width: 600px)': { paddingBottom: 0 },
    overflowX: 'hidden',
    background: theme.colors.background.canvas,
    color: theme.colors.text.primary,
  }),
  figures: css({
    flex: '1 1 auto',
    display: 'flex',
    flexWrap: 'wrap',
    alignItems: 'stretch',
    gap: '0.8em',
    minHeight: 0,
  }),
  trouble: css({
    fontSize: '1.8em',
    lineHeight: 1.3,
    color: theme.colors.error.text,
    '&:empty': { display: 'none' },
  }),
  // Seen by who has a mouse over the screen, a finger or a keyboard on it; the crowd sees figures.
  tools: css({
    position: 'absolute',
    top: 4,
    right: 4,
    display: 'flex',
    gap: theme.spacing(1),
    opacity: 0,
    '*:hover > &, &:focus-within': { opacity: 1 },
    '@media (hover: none)': { opacity: 1 },
  }),
  keys: css({
    display: 'grid',
    gridTemplateColumns: 'auto 1fr',
    gap: theme.spacing(1, 3),
    margin: 0,
    fontSize: 'max(14px, min(1.2vw, 2.1vh))',
    '& dd': { margin: 0 },
    '& kbd': { fontSize: '1em' },
  }),
});
