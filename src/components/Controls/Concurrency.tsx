import React, { memo, useId, useState } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { Field, Input, useStyles2 } from '@grafana/ui';

import { limits, type Slider } from '../../client';
import { wholeNumber } from '../../lib/input';
import { rangeInput } from '../../lib/styles';
import { levelAt, rangeAround, type Range } from './range';

interface ConcurrencyProps {
  /** What the operator wants, or what is in force. */
  value: number;
  /** The operator wants another one. */
  onChange(value: number): void;
  /** The operator means it. */
  onDone(): void;
  range: Slider;
  /** The highest concurrency that the load generator accepts. */
  limit: number;
  disabled: boolean;
}

/**
 * The concurrency as a slider over the usual range, and as a number for any
 * other. A range input of the browser's own announces its value, and takes every
 * key that a slider has. Where the concurrency is beyond the usual range, the slider reaches to it.
 */
export const Concurrency = memo(function Concurrency(props: ConcurrencyProps) {
  const { value, onChange, onDone, range, limit, disabled } = props;
  const styles = useStyles2(getStyles);
  const id = useId();
  // An end that came nearer under the thumb would throw it somewhere else.
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

/** What is typed counts when it is complete (Enter, or on leaving), so that 120 is never 12 on its way. */
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

/** Arrow keys and the arrows of the field have no type of input. */
function isTyped(event: Event): boolean {
  return 'inputType' in event && Boolean(event.inputType);
}

const getStyles = (theme: GrafanaTheme2) => ({
  concurrency: css({
    display: 'flex',
    flexWrap: 'wrap',
    alignItems: 'flex-start',
    gap: theme.spacing(0.5, 2),
    flex: '1 1 320px',
    minWidth: 0,
    maxWidth: '70rem', // a hand's way, not meters
  }),
  label: css({ lineHeight: theme.spacing(4), fontWeight: theme.typography.fontWeightMedium }),
  slider: css({ flex: '1 1 108px', minWidth: 0 }),
  input: rangeInput(theme),
  ends: css({
    display: 'flex',
    justifyContent: 'space-between',
    color: theme.colors.text.secondary,
    fontSize: theme.typography.bodySmall.fontSize,
  }),
});
