import { useEffect, useId, useState } from 'react';

import { Button, Combobox, Field } from '@grafana/ui';

import {
  previewTraffic,
  useClient,
  usePolled,
  type Problem,
  shapeNumbers,
  type ShapePreset,
  shapes,
  type TrafficShape,
  type WorkloadPatch,
} from '../../client';
import type { Level } from '../../lib/level';
import { COLUMN, stylesOf, WRAP } from '../../lib/styles';
import { TextField } from '../TextField';
import { errorOf, isRecorded, toShape, toValues, type Values } from './model';
import { Preview } from './Preview';

interface TrafficProps {
  lane: string;
  /** The level to preview. */
  level: Level;
  /** The shape in force. */
  shape: TrafficShape;
  disabled: boolean;
  busy: boolean;
  /** The load generator's refusal of the last patch. */
  problem?: Problem;
  /** Resolves to whether it succeeded. */
  onApply(patch: WorkloadPatch): Promise<boolean>;
}

/** Milliseconds from the last key to the next preview. */
export const SETTLED = 600;

/** What conversations send, with a preview of it. */
export function Traffic({ lane, level, shape, disabled, busy, problem, onApply }: TrafficProps) {
  const styles = useStyles();
  const id = useId();
  const client = useClient();
  const [edited, setEdited] = useState<Values>();
  const values = edited ?? toValues(shape);
  const next = toShape(values);
  const request = { concurrency: level, shape: next };
  const key = JSON.stringify(request);
  const isSettled = useSettled(key, SETTLED) === key;
  const hasPlan = next !== undefined && !isRecorded(next); // conversations about texts depend on the answers
  const preview = usePolled(
    hasPlan && isSettled ? () => previewTraffic(client, lane, request) : undefined,
    false,
    `traffic of ${lane} ${key}`
  );
  const isSame = JSON.stringify(next) === JSON.stringify(toShape(toValues(shape)));
  const apply = async () => {
    if (next && (await onApply({ shape: next }))) {
      setEdited(undefined);
    }
  };
  const refusal = (path: string) => (problem?.field === path ? problem.message : undefined);
  return (
    <div className={styles.traffic}>
      <form
        className={styles.form}
        aria-label="Traffic"
        onSubmit={(event) => {
          event.preventDefault();
          void apply();
        }}
      >
        <Field
          noMargin
          label="Shape"
          htmlFor={id}
          invalid={Boolean(refusal('shape.preset'))}
          error={refusal('shape.preset')}
        >
          <Combobox<ShapePreset>
            id={id}
            width={24}
            options={options}
            value={values.preset}
            disabled={disabled}
            onChange={({ value }) => setEdited({ preset: value })}
          />
        </Field>
        {shapes[values.preset].numbers.map((name) => (
          <TextField
            key={name}
            label={shapeNumbers[name].label}
            suffix={shapeNumbers[name].unit}
            inputMode="decimal"
            placeholder="preset"
            width={21}
            value={values[name] ?? ''}
            disabled={disabled}
            error={errorOf(name, values[name]) ?? refusal(`shape.${name}`)}
            onChange={(text) => setEdited({ ...values, [name]: text })}
          />
        ))}
        {values.preset === 'mixed' && (
          <TextField
            label="Parts and weights"
            placeholder="chat=6,rag=2,agent=1,batch=1"
            width={36}
            value={values.mix ?? ''}
            disabled={disabled}
            error={refusal('shape.mix')}
            onChange={(mix) => setEdited({ ...values, mix })}
          />
        )}
        <Button
          type="submit"
          className={styles.apply}
          icon={busy ? 'spinner' : undefined}
          disabled={disabled || busy || !next || isSame}
        >
          Apply
        </Button>
      </form>
      {hasPlan && <Preview of={preview} />}
    </div>
  );
}

const options = Object.entries(shapes).map(([value, { label, description }]) => ({
  value: value as ShapePreset,
  label,
  description,
}));

/** Returns a value once it has not changed for so many milliseconds. */
function useSettled<T>(value: T, after: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), after);
    return () => clearTimeout(timer);
  }, [value, after]);
  return settled;
}

const useStyles = stylesOf((theme) => ({
  traffic: { ...COLUMN, gap: theme.spacing(1.5), paddingTop: theme.spacing(1) },
  form: { ...WRAP, alignItems: 'flex-start', gap: theme.spacing(1, 2) },
  // Beside the fields, aligned below their labels.
  apply: { marginTop: theme.spacing(2.5) },
}));
