import { memo, useId, useState } from 'react';

import { Field, Input, RadioButtonGroup } from '@grafana/ui';

import type { Limit, Settings, Slider } from '../../client';
import { plain } from '../../lib/format';
import { decimalNumber, wholeNumber } from '../../lib/input';
import { kindOf, levelOf, levelWords, valueOf, type Level, type LevelKind } from '../../lib/level';
import { rangeInput, stylesOf, WRAP } from '../../lib/styles';
import { boundsOf, levelAt, rangeAround, type Range } from './range';

interface ConcurrencyProps {
  /** The requested level, or the one in force. */
  value: Level;
  /** Called while the slider or the number changes. */
  onChange(value: Level): void;
  /** Called for another kind of level. */
  onKind(kind: LevelKind): void;
  /** Called when the change is complete. */
  onDone(): void;
  settings: Settings;
  disabled: boolean;
}

const kinds: Array<{ value: LevelKind; label: string }> = [
  { value: 'conversations', label: 'Conversations' },
  { value: 'rate', label: 'Rate' },
];

/** The load as conversations in progress or as a rate: a slider over the usual range, and a number for any other. */
export const Concurrency = memo(function Concurrency(props: ConcurrencyProps) {
  const { value: level, onChange, onKind, onDone, settings, disabled } = props;
  const styles = useStyles();
  const kind = kindOf(level);
  const { slider, limit } = boundsOf(kind, settings);
  const parts = {
    kind,
    value: valueOf(level),
    onChange: (value: number) => onChange(levelOf(kind, value)),
    onDone,
    range: slider,
    limit,
    disabled,
  };
  return (
    <div className={styles.concurrency}>
      <RadioButtonGroup
        aria-label="Kind of load"
        size="sm"
        className={styles.kinds}
        options={kinds}
        value={kind}
        disabled={disabled}
        onChange={onKind}
      />
      <LevelSlider key={`slider ${kind}`} {...parts} />
      <LevelNumber key={`number ${kind}`} {...parts} />
    </div>
  );
});

interface PartProps {
  kind: LevelKind;
  value: number;
  onChange(value: number): void;
  onDone(): void;
  range: Slider;
  limit: Limit;
  disabled: boolean;
}

const names: Record<LevelKind, string> = { conversations: 'Concurrency', rate: 'Rate' };

/**
 * A native range input announces its value and supports every key of a slider. Where the level is beyond the usual
 * range, the slider extends to it.
 */
function LevelSlider({ kind, value, onChange, onDone, range, limit, disabled }: PartProps) {
  const styles = useStyles();
  const id = useId();
  // An end that moved closer during a drag would move the thumb.
  const [held, hold] = useState<Range>();
  const around = rangeAround(held ? [value, held.min, held.max] : [value], range, limit);
  const { min, max, step } = around;
  const share = max > min ? (100 * (value - min)) / (max - min) : 0;
  return (
    <>
      <label htmlFor={id} className={styles.label}>
        {names[kind]}
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
          aria-valuetext={levelWords(levelOf(kind, value))}
          onFocus={() => hold(around)}
          onBlur={() => hold(undefined)}
          onChange={(event) => onChange(levelAt(event.currentTarget.valueAsNumber, value, range, around))}
          onKeyDown={(event) => event.key === 'Enter' && onDone()}
        />
        <div className={styles.ends} aria-hidden="true">
          <span>{plain(min)}</span>
          <span>{plain(max)}</span>
        </div>
      </div>
    </>
  );
}

/** A typed value is applied when it is complete (Enter, or on leaving), so that typing 120 never sets 12. */
function LevelNumber({ kind, value, onChange, onDone, range, limit, disabled }: PartProps) {
  const [text, setText] = useState<string>();
  const check = kind === 'rate' ? decimalNumber : wholeNumber;
  const error = text === undefined ? undefined : check(text, limit);
  const change = (entered: string, typed: boolean) => {
    setText(entered);
    if (!typed && !check(entered, limit)) {
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
        aria-label={`${names[kind]} as a number`}
        min={kind === 'rate' ? limit.min : range.min}
        max={limit.max}
        step={range.increment}
        suffix={kind === 'rate' ? '/s' : undefined}
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
  kinds: { alignSelf: 'center' },
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
