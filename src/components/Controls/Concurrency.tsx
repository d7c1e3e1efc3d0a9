import { memo, useId, useState } from 'react';

import { Field, Input } from '@grafana/ui';

import { limits, type Slider } from '../../client';
import { wholeNumber } from '../../lib/input';
import { rangeInput, stylesOf, WRAP } from '../../lib/styles';
import { levelAt, rangeAround, type Range } from './range';

interface ConcurrencyProps {
  /** The requested concurrency, or the one in force. */
  value: number;
  /** Called while the slider or the number changes. */
  onChange(value: number): void;
  /** Called when the change is complete. */
  onDone(): void;
  range: Slider;
  /** The highest concurrency that the load generator accepts. */
  limit: number;
  disabled: boolean;
}

/**
 * The concurrency as a slider over the usual range, and as a number for any other. A native range input announces its
 * value and supports every key of a slider. Where the concurrency is beyond the usual range, the slider extends to it.
 */
export const Concurrency = memo(function Concurrency(props: ConcurrencyProps) {
  const { value, onChange, onDone, range, limit, disabled } = props;
  const styles = useStyles();
  const id = useId();
  // An end that moved closer during a drag would move the thumb.
  const [held, hold] = useState<Range>();
  const around = rangeAround(held ? [value, held.min, held.max] : [value], range, limit);
  const { min, max, step } = around;
  const share = max > min ? (100 * (value - min)) / (max - min) : 0;
  return (
    <div className={styles.concurrency}>
      <label htmlFor={id} className={styles.label}>
        Concurrency
      </label>
      <div className={styles.slider}>
        <input
          id={id}
          type="range"
          className={styles.input}
          style={{ ['--share' as string]: `${share}%` }}
          min={min}
          max={max}
          step={step}
          value={value}
          disabled={disabled}
          aria-valuetext={`${value} conversations`}
          onFocus={() => hold(around)}
          onBlur={() => hold(undefined)}
          onChange={(event) => onChange(levelAt(event.currentTarget.valueAsNumber, value, range, around))}
          onKeyDown={(event) => event.key === 'Enter' && onDone()}
        />
        <div className={styles.ends} aria-hidden="true">
          <span>{min}</span>
          <span>{max}</span>
        </div>
      </div>
      <ConcurrencyNumber {...props} />
    </div>
  );
});

/** A typed value is applied when it is complete (Enter, or on leaving), so that typing 120 never sets 12. */
function ConcurrencyNumber({ value, onChange, onDone, range, limit, disabled }: ConcurrencyProps) {
  const [text, setText] = useState<string>();
  const allowed = { ...limits.concurrency, max: limit };
  const error = text === undefined ? undefined : wholeNumber(text, allowed);
  const change = (entered: string, typed: boolean) => {
    setText(entered);
    if (!typed && !wholeNumber(entered, allowed)) {
      onChange(Number(entered));
    }
  };
  const apply = () => {
    if (text !== undefined && !error && Number(text) !== value) {
      onChange(Number(text));
    }
    onDone();
    setText(undefined);
  };
  return (
    <Field noMargin invalid={Boolean(error)} error={error}>
      <Input
        type="number"
        width={11}
        aria-label="Concurrency as a number"
        min={range.min}
        max={limit}
        step={range.increment}
        value={text ?? value}
        disabled={disabled}
        onChange={(event) => change(event.currentTarget.value, isTyped(event.nativeEvent))}
        onBlur={apply}
        onKeyDown={(event) => event.key === 'Enter' && !error && apply()}
      />
    </Field>
  );
}

/** Arrow keys and the field's arrows cause an event without an inputType. */
function isTyped(event: Event): boolean {
  return 'inputType' in event && Boolean(event.inputType);
}

const useStyles = stylesOf((theme) => ({
  concurrency: {
    ...WRAP,
    alignItems: 'flex-start',
    gap: theme.spacing(0.5, 2),
    flex: '1 1 320px',
    minWidth: 0,
    maxWidth: '70rem', // a drag of moderate length
  },
  label: { lineHeight: theme.spacing(4), fontWeight: theme.typography.fontWeightMedium },
  slider: { flex: '1 1 108px', minWidth: 0 },
  input: rangeInput(theme),
  ends: {
    display: 'flex',
    justifyContent: 'space-between',
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
  },
}));
