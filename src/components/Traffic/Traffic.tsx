import { useId, useState, type FormEvent } from 'react';

import { Button, Combobox, Field, RadioButtonGroup } from '@grafana/ui';

import {
  previewTraffic,
  useClient,
  usePolled,
  type Problem,
  type ShapePreset,
  type State,
  type WorkloadPatch,
} from '../../client';
import type { Level } from '../../lib/level';
import { COLUMN, stylesOf, WRAP } from '../../lib/styles';
import { useSettled } from '../../lib/useSettled';
import { TextField } from '../TextField';
import {
  arrivals,
  check,
  current,
  fieldOf,
  fieldsOf,
  hasArrivals,
  isTrace,
  presetOf,
  shapeOptions,
  toPatch,
  type FieldName,
  type Values,
} from './model';
import { Preview } from './Preview';

export interface TrafficProps {
  lane: string;
  state: State;
  /** The level on the slider. */
  level: Level;
  /** The one field to show, without a preview; all of them without it. */
  only?: FieldName;
  disabled: boolean;
  busy: boolean;
  /** The load generator's refusal of the last patch. */
  problem?: Problem;
  /** Resolves to whether it succeeded. */
  onApply(patch: WorkloadPatch): Promise<boolean>;
}

/** Milliseconds from the last key to the next preview. */
export const SETTLED = 600;

/** What conversations send and when they begin, with a preview of it. The settings are applied together. */
export function Traffic(props: TrafficProps) {
  const { lane, state, level, only, problem } = props;
  const styles = useStyles();
  const client = useClient();
  const [edited, setEdited] = useState<Values>({});
  const inForce = current(state);
  const values = { ...inForce, ...edited };
  const load = { level, isTrace: isTrace(state) };
  const errors = check(fieldsOf(load, values), values);
  const isRight = Object.keys(errors).length === 0;
  const patch = isRight ? toPatch(load, values, inForce) : undefined;
  const noPreview = whyNone(load.isTrace || presetOf(values) !== 'recorded', isRight, state.phase);
  const request = { concurrency: level, ...patch };
  const key = JSON.stringify(request);
  const isSettled = useSettled(key, SETTLED);
  const preview = usePolled(
    only === undefined && noPreview === undefined && isSettled
      ? () => previewTraffic(client, lane, request)
      : undefined,
    false,
    `traffic of ${lane} ${key}`
  );
  const refusals = [preview.problem, problem].flatMap((one) => {
    const path = fieldOf(one?.field);
    return one && path ? [[path, one.message]] : [];
  });
  const form = (
    <TrafficForm
      {...props}
      load={load}
      values={values}
      errors={{ ...(Object.fromEntries(refusals) as Values), ...errors }}
      patch={patch}
      onEdit={(path, value) => setEdited({ ...edited, [path]: value })}
      onApply={async (change) => {
        const isApplied = await props.onApply(change);
        if (isApplied) {
          setEdited({});
        }
        return isApplied;
      }}
    />
  );
  if (only !== undefined) {
    return form;
  }
  return (
    <div className={styles.traffic}>
      {load.isTrace && <div>{state.shape.traffic}</div>}
      {form}
      {noPreview === undefined ? (
        <Preview of={preview} isAtField={fieldOf(preview.problem?.field) !== undefined} />
      ) : (
        <small>{noPreview}</small>
      )}
    </div>
  );
}

/** Returns why there is no preview; undefined where there is one. */
function whyNone(isPlanned: boolean, isRight: boolean, phase: State['phase']): string | undefined {
  if (!isPlanned) {
    return 'Recorded conversations depend on the answers, so there is no preview of them.';
  }
  if (phase !== 'stopped') {
    return 'No preview while the workload runs: it would disturb the measurement.';
  }
  return isRight ? undefined : 'Correct the fields marked in red for a preview.';
}

interface TrafficFormProps extends TrafficProps {
  load: { level: Level; isTrace: boolean };
  values: Values;
  errors: Values;
  /** The changes; undefined without any valid one. */
  patch?: WorkloadPatch;
  onEdit(path: FieldName, value: string): void;
}

function TrafficForm(props: TrafficFormProps) {
  const { load, values, errors, patch, only, disabled, busy, onEdit, onApply } = props;
  const styles = useStyles();
  const id = useId();
  const ready = !disabled && !busy && patch !== undefined;
  const apply = (event: FormEvent) => {
    event.preventDefault();
    if (ready) {
      void onApply(patch);
    }
  };
  const fields = fieldsOf(load, values).filter(({ path }) => only === undefined || path === only);
  const fieldsBy = (wanted: boolean) =>
    fields
      .filter(({ isLoad = false }) => isLoad === wanted)
      .map(({ path, label, unit, placeholder, width }) => (
        <TextField
          key={path}
          label={label}
          suffix={unit}
          inputMode={path === 'shape.mix' ? 'text' : 'decimal'}
          placeholder={placeholder}
          width={width}
          value={values[path] ?? ''}
          disabled={disabled}
          error={errors[path]}
          onChange={(value) => onEdit(path, value)}
        />
      ));
  return (
    <form className={styles.form} aria-label={only === undefined ? 'Traffic' : undefined} onSubmit={apply}>
      {!load.isTrace && only === undefined && (
        <div className={styles.row}>
          <Field
            noMargin
            label="Shape"
            htmlFor={id}
            invalid={Boolean(errors['shape.preset'])}
            error={errors['shape.preset']}
          >
            <Combobox<ShapePreset>
              id={id}
              width={24}
              options={shapeOptions}
              value={presetOf(values)}
              disabled={disabled}
              onChange={({ value }) => onEdit('shape.preset', value)}
            />
          </Field>
          {fieldsBy(false)}
        </div>
      )}
      <div className={styles.row}>
        {hasArrivals(load) && only === undefined && (
          <Field noMargin label="Arrivals" invalid={Boolean(errors.arrivals)} error={errors.arrivals}>
            <RadioButtonGroup
              aria-label="Arrivals"
              options={arrivals}
              value={values.arrivals}
              disabled={disabled}
              onChange={(value) => onEdit('arrivals', value)}
            />
          </Field>
        )}
        {fieldsBy(true)}
        <Button type="submit" className={styles.apply} icon={busy ? 'spinner' : undefined} disabled={!ready}>
          Apply
        </Button>
      </div>
    </form>
  );
}

const useStyles = stylesOf((theme) => ({
  traffic: { ...COLUMN, gap: theme.spacing(1.5), paddingTop: theme.spacing(1) },
  form: { ...COLUMN, gap: theme.spacing(1) },
  row: { ...WRAP, alignItems: 'flex-start', gap: theme.spacing(1, 2) },
  // Beside the fields, aligned below their labels.
  apply: { marginTop: theme.spacing(2.5) },
}));
