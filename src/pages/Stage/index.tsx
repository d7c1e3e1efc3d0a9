import { Fragment, useState } from 'react';

import { IconButton, Modal } from '@grafana/ui';

import { useLive, type Live, type SweepSummary } from '../../client';
import { HeadlineView } from '../../components/Headline';
import { FullScreenButton } from '../../components/Present';
import { useSweep } from '../../components/SweepResult/useSweeps';
import { COLUMN, LOW, NARROW, stylesOf, WRAP } from '../../lib/styles';
import { useKeys } from '../../lib/useKeys';
import StageBoth from '../SideBySide/StageBoth';
import { hasTwin, LANE } from '../lane';
import { useChoice } from '../useChoice';
import { Bars, TurnBars } from './Bars';
import { FigureView } from './FigureView';
import { Head } from './Head';
import { PhoneControls } from './PhoneControls';
import { figureOf } from './figures';
import { knownOf, titleOf, troubles } from './model';
import { referencesOf } from './references';
import { Arms, armsName, Trial, trialOf } from './Trial';
import { useHistory } from './useHistory';
import { useLeave } from './useLeave';
import { useOperate } from './useOperate';

/**
 * One screen for an audience: the mode, the comparison with the baseline in one sentence, two large figures with their
 * last ten minutes, TTFT by turn, and the workers. Where two routers serve the same conversations, it shows both, or
 * one of them on request; a trial has it while it runs. It is operated by keys, and on a phone by touch.
 */
export default function Stage() {
  const styles = useStyles();
  const live = useLive(LANE);
  const operate = useOperate(live, styles.dialog);
  const [help, setHelp] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const [view, setView] = useChoice('view');
  const twin = hasTwin(live);
  const trial = trialOf(knownOf(live)?.lane);
  const both = twin && view !== ONE && !trial;
  const turn = () => setView(both ? ONE : undefined);
  const leave = useLeave(() => {
    const open = help || operate.confirm.isOpen;
    setHelp(false);
    operate.confirm.dismiss();
    return open;
  });
  useKeys({
    ' ': operate.startStop,
    k: () => operate.askMode('kv'),
    r: () => operate.askMode('round_robin'),
    n: operate.measure,
    d: operate.duel,
    ArrowUp: () => operate.step(1),
    ArrowDown: () => operate.step(-1),
    ...(twin && { t: turn }),
    '?': () => setHelp(true),
    Escape: leave,
  });
  return (
    <div className={styles.stage}>
      <Head live={live} title={titleOf(live, both)} concurrency={operate.concurrency} />
      <Trouble words={[...troubles(live), operate.notice]} />
      {both ? <StageBoth /> : <OneRouter live={live} trial={trial} />}
      <PhoneControls live={live} operate={operate} isOpen={isOpen} />
      <div className={styles.tools}>
        {operate.me?.canOperate && (
          <IconButton
            className={styles.fold}
            name="sliders-v-alt"
            size="xl"
            aria-label="Controls"
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          />
        )}
        <FullScreenButton />
        {twin && (
          <IconButton
            name="columns"
            size="xl"
            aria-label="Side by side"
            aria-pressed={both}
            tooltip="Side by side (T)"
            onClick={turn}
          />
        )}
        <IconButton name="keyboard" size="xl" aria-label="Keys" tooltip="Keys (?)" onClick={() => setHelp(true)} />
        <IconButton name="times" size="xl" aria-label="Leave" tooltip="Leave (Esc)" onClick={leave} />
      </div>
      {help && <KeyList twin={twin} onClose={() => setHelp(false)} />}
      {operate.confirm.dialog}
    </div>
  );
}

/** The name of the view of one of two routers in the address. */
const ONE = 'one';

/** The difference, two large figures with their last ten minutes, TTFT by turn, and the workers. */
function OneRouter({ live, trial }: { live: Live; trial?: SweepSummary }) {
  const styles = useStyles();
  const points = useHistory(live);
  const sweep = useSweep(trial?.id).value;
  const known = knownOf(live);
  const isLive = live.lane !== undefined;
  return (
    <>
      <HeadlineView state={live.state} headline={known?.lane.baseline.headline} large />
      {known && trial && <Trial known={known} trial={trial} sweep={sweep} />}
      <div className={styles.figures}>
        {figures.map(({ meaning, value }) => (
          <FigureView
            key={value}
            figure={figureOf(value, known)}
            meaning={meaning}
            value={value}
            references={known ? referencesOf(known.lane, value) : []}
            points={points}
            now={known && Date.parse(known.time)}
            isLive={isLive}
            slo={value === 'ttft_p95' ? known?.settings.slo.ttft : undefined}
            arms={trial && { name: armsName(value), list: <Arms trial={trial} sweep={sweep} value={value} /> }}
          />
        ))}
      </div>
      <div className={styles.bars}>
        <TurnBars lane={known?.lane} isLive={isLive} />
        <Bars cluster={known?.lane.cluster} isLive={isLive} />
      </div>
    </>
  );
}

const figures = [
  { meaning: 'first token', value: 'ttft_p95' },
  { meaning: 'of all answers', value: 'output_tokens_per_second' },
] as const;

/** Every warning as a large sentence, because it explains a missing figure. */
function Trouble({ words }: { words: Array<string | undefined> }) {
  const styles = useStyles();
  return (
    <div role="alert" className={styles.trouble}>
      {words.map((sentence) => sentence && <div key={sentence}>{sentence}</div>)}
    </div>
  );
}

function KeyList({ twin, onClose }: { twin: boolean; onClose(): void }) {
  const styles = useStyles();
  return (
    <Modal title="Keys of the stage view" className={styles.dialog} isOpen onDismiss={onClose}>
      <dl className={styles.keys}>
        {keysOf(twin).map(([keys, does]) => (
          <Fragment key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{does}</dd>
          </Fragment>
        ))}
      </dl>
    </Modal>
  );
}

/** A key, or several, with its description. */
type Key = [keys: string, does: string];

/** The keys of the stage view with their descriptions, in the order of the list. Some exist only with a second lane. */
function keysOf(twin: boolean): Key[] {
  const both: Key[] = [
    ['T', 'Shows both routers side by side, or one of them'],
    ['C', 'Side by side: starts a showcase'],
  ];
  return [
    ['Space', 'Starts the workload; stops it after a confirmation'],
    ['K', 'Changes to KV-aware routing, after a confirmation while it runs'],
    ['R', 'Changes to round-robin routing, after a confirmation while it runs'],
    ['↑ ↓', 'More or fewer conversations, by one increment'],
    ['N', 'Measures anew: earlier turns no longer count'],
    ['D', 'Duel: the modes alternate for ten minutes; any key of the workload ends it'],
    ...(twin ? both : []),
    ['?', 'Shows these keys'],
    ['Esc', 'Leaves the stage view'],
  ];
}

const useStyles = stylesOf((theme) => ({
  stage: {
    // All sizes are multiples of this one: a hundredth of the width at 16:9, never too small to be read.
    fontSize: 'max(10px, min(1vw, 1.7778vh))',
    position: 'relative',
    ...COLUMN,
    gap: '0.7em',
    minHeight: '100dvh',
    boxSizing: 'border-box',
    padding: '0.8em 1em',
    [NARROW]: { paddingBottom: 0 },
    // Where there is little height, the sentence is below the figures, and all else below the screen.
    [LOW]: {
      gap: '0.4em',
      padding: '0.4em 0.6em',
      '& > section': { order: 1 },
      '& > section[aria-label="Result"]': {
        padding: '0.2em 1em',
        '--sentence': '1.8em',
        '--detail': '1.2em',
        '& ul': { display: 'none' },
      },
    },
    overflowX: 'clip', // hidden would make it the scroll container of a phone's sticky controls
    background: theme.colors.background.canvas,
    color: theme.colors.text.primary,
  },
  figures: {
    flex: '1 1 auto',
    ...WRAP,
    alignItems: 'stretch',
    gap: '0.7em',
    minHeight: 0,
    [NARROW]: {
      display: 'grid',
      gridTemplateColumns: 'repeat(2, minmax(0, 1fr))',
      gap: '0 1em',
      padding: '0.6em 1em',
      borderRadius: '0.5em',
      alignContent: 'start',
      background: theme.colors.background.primary,
    },
  },
  bars: { ...WRAP, gap: '0.7em', [LOW]: { order: 2 } },
  trouble: {
    fontSize: '1.4em',
    lineHeight: 1.3,
    color: theme.colors.error.text,
    '&:empty': { display: 'none' },
  },
  // Shown on hover, touch or keyboard focus; otherwise only the figures are visible.
  tools: {
    position: 'absolute',
    top: 4,
    right: 4,
    display: 'flex',
    gap: theme.spacing(1),
    opacity: 0,
    '*:hover > &, &:focus-within': { opacity: 1 },
    '@media (hover: none)': { opacity: 1 },
    '& button': { height: 'auto' },
    '& svg': { width: 'max(24px, 1.8em)', height: 'max(24px, 1.8em)' },
  },
  fold: { display: 'none', [LOW]: { display: 'inline-flex' } },
  // It is read from a distance, and uses the stage's font size.
  dialog: {
    width: 'min(94vw, 48em)',
    fontSize: 'max(14px, min(1.4vw, 2.5vh))',
    '& h2': { fontSize: 'inherit' },
    '& button:has(span)': { height: 'auto', padding: '0.4em 0.8em', fontSize: 'inherit' },
    '& button svg': { width: '1.4em', height: '1.4em' },
  },
  keys: {
    display: 'grid',
    gridTemplateColumns: 'auto 1fr',
    gap: '0.4em 1.2em',
    margin: 0,
    '& dd': { margin: 0 },
    '& kbd': { fontSize: '1em' },
  },
}));
