import { useState } from 'react';

import { Alert, Button } from '@grafana/ui';

import type { ModeRequest, State } from '../../client';
import { groupModes, speculationFor } from '../../lib/modes';
import { modeName } from '../../lib/names';
import { stylesOf, WRAP } from '../../lib/styles';

/** Whether the question is still open. Until it is answered the mode switch is hidden, because it looks the same. */
export function isAsked({ mode, mode_from, driver }: State): boolean {
  return mode === 'unknown' && mode_from === undefined && driver === 'manual';
}

interface AskModeProps {
  state: State;
  disabled: boolean;
  onSay(request: ModeRequest): void;
}

/**
 * Asks the operator once which mode a server uses that does not report it. After the
 * answer "unknown" the mode can still be set later.
 */
export function AskMode({ state, disabled, onSay }: AskModeProps) {
  const styles = useStyles();
  const [again, setAgain] = useState(false);
  if (state.mode !== 'unknown' || state.driver !== 'manual') {
    return null;
  }
  if (state.mode_from !== undefined && !again) {
    return (
      <div>
        <Button variant="secondary" size="sm" disabled={disabled} onClick={() => setAgain(true)}>
          Set the routing mode of this server
        </Button>
      </div>
    );
  }
  const say = (request: ModeRequest) => {
    setAgain(false);
    onSay({ ...request, in_force: true });
  };
  const { modes, arms } = groupModes(state);
  return (
    <Alert severity="info" title="Which routing mode does this server use now?" bottomSpacing={0}>
      <div>
        The server does not report it. Until it is known, no result is called better or worse. Your answer changes
        nothing on the server.
      </div>
      <div className={styles.answers} role="group" aria-label="Routing mode of this server">
        {arms.map(({ value: arm }) => (
          <Button key={arm} variant="secondary" disabled={disabled} onClick={() => say({ arm })}>
            {arm}
          </Button>
        ))}
        {modes
          .filter(({ offered }) => offered)
          .map(({ value: mode }) => (
            <Button
              key={mode}
              variant="secondary"
              disabled={disabled}
              onClick={() => say({ mode, speculation: speculationFor(mode, state) })}
            >
              {modeName(mode)}
            </Button>
          ))}
        <Button variant="secondary" disabled={disabled} onClick={() => say({ mode: 'unknown' })}>
          Another mode, or unknown
        </Button>
      </div>
    </Alert>
  );
}

const useStyles = stylesOf((theme) => ({
  answers: { ...WRAP, gap: theme.spacing(1), marginTop: theme.spacing(1) },
}));
