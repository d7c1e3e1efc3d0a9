import type { ModeRequest, State } from '../client';
import { number } from './format';
import { modeText, servingName } from './names';
import { kindWord, questionText } from './sweeps';

/** The confirmation of an action that loses something. */
export interface Question {
  title: string;
  body: string;
  confirm: string;
  /** The label of the button that keeps everything; by default, "Cancel". */
  dismiss?: string;
  /** The action cannot be undone. */
  isFinal?: boolean;
}

const SPAN_LOST = 'a span in progress is discarded and measured again on resume.';

/**
 * Returns the confirmation before a workload stops or drains; undefined where nothing would be lost. A drain lets turns
 * end.
 */
export function stopQuestion({ phase, sweep, concurrency }: State, drain: boolean): Question | undefined {
  if (!sweep && (drain || phase === 'stopped')) {
    return undefined;
  }
  const verb = drain ? 'Drain' : 'Stop';
  const word = sweep && kindWord(sweep.request.kind);
  return {
    title: word ? `${verb} the workload and pause the ${word}?` : `${verb} the workload?`,
    body: [
      sweep && `${questionText(sweep.request)}: ${SPAN_LOST}`,
      !drain && phase !== 'stopped' && lostText(concurrency.actual),
    ]
      .filter(Boolean)
      .join(' '),
    confirm: verb,
  };
}

function lostText(conversations: number): string {
  if (conversations === 0) {
    return 'No conversation is in progress yet.';
  }
  const [n, turns] =
    conversations === 1
      ? ['1 conversation ends', 'its turn']
      : [`${number(conversations)} conversations end`, 'their turns'];
  return `${n} in the middle of ${turns}. This cannot be undone.`;
}

/** What a request changes to, as a person says it. */
function requestText({ arm, mode = 'unknown', speculation }: ModeRequest): string {
  return speculation ? modeText({ arm, mode, speculation }) : servingName({ arm, mode });
}

/** Asks before a change of routing; undefined while the workload is stopped and has nothing to lose. */
export function modeQuestion(state: State, request: ModeRequest): Question | undefined {
  if (state.phase === 'stopped') {
    return undefined;
  }
  const to = requestText(request);
  return {
    title: `Change to ${to}?`,
    body:
      'The figures settle again, which takes a minute or more. Where the change restarts something, the ' +
      'workload stops meanwhile, and starts again at the same concurrency with cold caches.',
    confirm: 'Change',
  };
}
