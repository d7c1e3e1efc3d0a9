import { useEffect, useState, type PropsWithChildren, type ReactNode } from 'react';
import type { FieldValues, Path, UseFormReturn } from 'react-hook-form';

import { Alert, Button, FieldSet, Stack } from '@grafana/ui';

import { asProblem, type Problem } from '../client';
import { stylesOf } from '../lib/styles';

/** The state of a form over stored values. Edited fields keep their edits when the stored values change. */
export const FOLLOW_STORED = {
  mode: 'onChange',
  resetOptions: { keepDirtyValues: true, keepDirty: true },
} as const;

/** Drops the edits. */
const RESET_ALL = { keepDirtyValues: false, keepDirty: false };

interface FormProps<In extends FieldValues, Out> {
  title: string;
  description: string;
  form: UseFormReturn<In, unknown, Out>;
  /** Stores the values, and returns what the fields hold afterwards. It rejects with a Problem. */
  save(values: Out): Promise<In>;
  /** Returns the field that a problem concerns. */
  fieldOf?(problem: Problem): Path<In> | undefined;
  /** Called with whether there are unsaved changes. */
  onChanged(changed: boolean): void;
  /** Further buttons, and their results. */
  actions?: ReactNode;
  result?: ReactNode;
}

/** A form for settings that are saved together. The entered values survive a save that fails. */
export function Form<In extends FieldValues, Out>(props: PropsWithChildren<FormProps<In, Out>>) {
  const styles = useStyles();
  const { title, description, form, save, fieldOf, onChanged, actions, result, children } = props;
  const { isDirty, isValid, isSubmitting, errors } = form.formState;
  const [saved, setSaved] = useState(false);
  useEffect(() => onChanged(isDirty), [isDirty, onChanged]);
  const submit = form.handleSubmit(async (values) => {
    try {
      form.reset(await save(values), RESET_ALL);
      setSaved(true);
    } catch (error) {
      const problem = asProblem(error);
      form.setError(fieldOf?.(problem) ?? 'root', { message: problem.message });
    }
  });
  const discard = () => {
    form.reset(undefined, RESET_ALL);
    setSaved(false);
  };
  const ready = isDirty && isValid && !isSubmitting;
  return (
    <form
      className={styles.form}
      aria-label={title}
      onSubmit={ready ? submit : (event) => event.preventDefault()}
      noValidate
    >
      <FieldSet label={title}>
        <p className={styles.description}>{description}</p>
        {children}
        {errors.root && (
          <Alert severity="error" title="The changes were not saved">
            {errors.root.message}
          </Alert>
        )}
        <Stack direction="row" gap={1} alignItems="center" wrap="wrap">
          <Button type="submit" icon={isSubmitting ? 'spinner' : undefined} disabled={!ready}>
            Save
          </Button>
          <Button type="button" variant="secondary" disabled={!isDirty || isSubmitting} onClick={discard}>
            Discard changes
          </Button>
          {actions}
          <span role="status" className={isDirty ? styles.unsaved : undefined}>
            {saveStatus(isDirty, saved)}
          </span>
        </Stack>
        {result && <div className={styles.result}>{result}</div>}
      </FieldSet>
    </form>
  );
}

function saveStatus(changed: boolean, saved: boolean): string {
  if (changed) {
    return 'Unsaved changes';
  }
  return saved ? 'Saved' : '';
}

const useStyles = stylesOf((theme) => ({
  form: { maxWidth: 640 },
  description: { color: theme.colors.text.secondary },
  unsaved: { color: theme.colors.warning.text, fontWeight: theme.typography.fontWeightMedium },
  result: { marginTop: theme.spacing(2) },
}));
