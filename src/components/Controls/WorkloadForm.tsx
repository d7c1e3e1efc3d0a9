import { useState, type FormEvent } from 'react';

import { Button, Field, RadioButtonGroup } from '@grafana/ui';

import { type Problem, type State, type WorkloadPatch, workloadSettings } from '../../client';
import { kindOf } from '../../lib/level';
import { stylesOf, WRAP } from '../../lib/styles';
import { TextField } from '../TextField';
import {
  arrivals,
  check,
  current,
  fieldOf,
  fieldsOf,
  labelOf,
  toPatch,
  type FieldName,
  type Values,
} from './workloadFields';

interface WorkloadFormProps {
  state: State;
  /** The one field to show; all of them without it. */
  only?: FieldName;
  disabled: boolean;
  busy: boolean;
  /** The load generator's refusal of the last patch. */
  problem?: Problem;
  /** Resolves to whether it succeeded. */
  onApply(patch: WorkloadPatch): Promise<boolean>;
}

/** The remaining settings of the workload, or one of them. They are applied together. */
export function WorkloadForm({ state, only, disabled, busy, problem, onApply }: WorkloadFormProps) {
  const styles = useStyles();
  const [edited, setEdited] = useState<Partial<Values>>({});
  const inForce = current(state);
  const values = { ...inForce, ...edited };
  const errors = check(values);
  const refused = fieldOf(problem?.field);
  const patch = toPatch(values, inForce);
  const ready = !disabled && !busy && patch !== undefined && Object.keys(errors).length === 0;
  const apply = async (event: FormEvent) => {
    event.preventDefault();
    if (ready && (await onApply(patch))) {
      setEdited({});
    }
  };
  return (
    <form className={styles.form} onSubmit={apply}>
      {only === undefined && kindOf(state.concurrency.target) === 'rate' && (
        <Field noMargin label={labelOf('arrivals')}>
          <RadioButtonGroup
            aria-label={labelOf('arrivals')}
            options={arrivals}
            value={arrivals.find(({ value }) => value === values.arrivals)?.value}
            disabled={disabled}
            onChange={(value) => setEdited(applyEdit(edited, 'arrivals', value, inForce.arrivals))}
          />
        </Field>
      )}
      {fieldsOf(state, values)
        .filter(({ path }) => only === undefined || path === only)
        .map(({ path, width }) => (
          <TextField
            key={path}
            label={labelOf(path)}
            inputMode="decimal"
            suffix={workloadSettings[path].unit}
            width={width}
            value={values[path]}
            disabled={disabled}
            error={errors[path] ?? (refused === path ? problem?.message : undefined)}
            onChange={(value) => setEdited(applyEdit(edited, path, value, inForce[path]))}
          />
        ))}
      <Button type="submit" className={styles.apply} icon={busy ? 'spinner' : undefined} disabled={!ready}>
        Apply
      </Button>
    </form>
  );
}

/** A value that is changed back to the one in force is no edit. */
function applyEdit(edited: Partial<Values>, name: FieldName, value: string, inForce: string): Partial<Values> {
  const { [name]: _, ...rest } = edited;
  return value === inForce ? rest : { ...rest, [name]: value };
}

const useStyles = stylesOf((theme) => ({
  form: { ...WRAP, alignItems: 'flex-start', gap: theme.spacing(1, 2), paddingTop: theme.spacing(1) },
  // Beside the fields, aligned below their labels.
  apply: { marginTop: theme.spacing(2.5) },
}));
