import { memo, useId } from 'react';

import { Button, ButtonGroup } from '@grafana/ui';

import type { ModeRequest } from '../../client';
import { groupModes, speculationFor, type Choice, type Offer } from '../../lib/modes';
import { modeName, speculationName } from '../../lib/names';
import { stylesOf, WRAP } from '../../lib/styles';

interface ModeSwitchProps extends Offer {
  disabled: boolean;
  onChange(request: ModeRequest): void;
}

/** Routing mode and speculative decoding, as far as the driver offers them. */
export const ModeSwitch = memo(function ModeSwitch({ disabled, onChange, ...state }: ModeSwitchProps) {
  const { modes, speculations, arms } = groupModes(state);
  if (arms.length > 0) {
    return (
      <Choices
        label="Arm"
        choices={arms}
        name={(arm) => arm}
        disabled={disabled}
        note={state.arm === undefined ? 'Which arm serves is not known yet.' : undefined}
        onChoose={(arm) => onChange({ arm })}
      />
    );
  }
  const modeReason = reason(state, modes, modeName(state.mode));
  return (
    <>
      <Choices
        label="Routing"
        choices={modes}
        name={modeName}
        disabled={disabled}
        reason={modeReason}
        onChoose={(mode) => onChange({ mode, speculation: speculationFor(mode, state) })}
      />
      <Choices
        label="Speculation"
        choices={speculations}
        name={speculationName}
        disabled={disabled}
        reason={reason(state, speculations, speculationName(state.speculation))}
        onChoose={(speculation) => onChange({ mode: state.mode, speculation })}
      />
    </>
  );
});

/** Explains why there is no choice. */
function reason(state: Offer, choices: Array<Choice<unknown>>, inForce: string): string | undefined {
  if (state.modes.length === 0) {
    return 'The cluster has not reported its modes yet. Is it running?';
  }
  return choices.length > 1 ? undefined : `The driver “${state.driver}” offers only “${inForce}”.`;
}

interface ChoicesProps<T> {
  label: string;
  choices: Array<Choice<T>>;
  name(value: T): string;
  disabled: boolean;
  /** Why there is no choice. */
  reason?: string;
  /** The effect of the current choice. */
  note?: string;
  onChoose(value: T): void;
}

/** Buttons rather than radio buttons: an arrow key must not restart a cluster. */
export function Choices<T extends string>(props: ChoicesProps<T>) {
  const { label, choices, name, disabled, reason, note, onChoose } = props;
  const words = reason ?? note;
  const styles = useStyles();
  const id = useId();
  return (
    <div className={styles.choices}>
      <span id={id} className={styles.label}>
        {label}
      </span>
      <div>
        <ButtonGroup
          className={styles.group}
          role="group"
          aria-labelledby={id}
          aria-describedby={words ? `${id}-words` : undefined}
        >
          {choices.map(({ value, selected, offered }) => (
            <Button
              key={value}
              variant={selected ? 'primary' : 'secondary'}
              aria-pressed={selected}
              disabled={disabled || Boolean(reason) || !offered}
              onClick={() => !selected && onChoose(value)}
            >
              {name(value)}
            </Button>
          ))}
        </ButtonGroup>
        {words && (
          <div id={`${id}-words`} className={styles.words}>
            {words}
          </div>
        )}
      </div>
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  choices: { ...WRAP, gap: theme.spacing(0, 2) },
  label: { lineHeight: theme.spacing(4), fontWeight: theme.typography.fontWeightMedium },
  group: { flexWrap: 'wrap', rowGap: theme.spacing(0.5) },
  words: {
    marginTop: theme.spacing(0.5),
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
  },
}));
