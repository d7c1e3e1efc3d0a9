import React, { type FormEvent, type PropsWithChildren, type ReactNode } from 'react';
import { css } from '@emotion/css';

import type { GrafanaTheme2 } from '@grafana/data';
import { Alert, Button, FieldSet, Stack, useStyles2 } from '@grafana/ui';

import type { Editing } from './useForm';

interface FormProps {
  title: string;
  description: string;
  form: Pick<Editing<object>, 'changed' | 'saving' | 'saved' | 'save' | 'discard'>;
  /** Whether what was entered can be saved. */
  valid: boolean;
  /** What went wrong with the last attempt, unless a field shows it. */
  problem?: string;
  /** Further buttons, and what came of them. */
  actions?: ReactNode;
  result?: ReactNode;
}

/** Settings that are saved together. What is entered survives a save that fails. */
export function Form(props: PropsWithChildren<FormProps>) {
  const styles = useStyles2(getStyles);
  const { title, description, form, valid, problem, actions, result, children } = props;
  const { changed, saving, saved } = form;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (changed && valid && !saving) {
      void form.save();
    }
  };
  return (
    <form className={styles.form} aria-label={title} onSubmit={submit} noValidate>
      <FieldSet label={title}>
        <p className={styles.description}>{description}</p>
        {children}
        {problem && (
          <Alert severity="error" title="The changes were not saved">
            {problem}
          </Alert>
        )}
        <Stack direction="row" gap={1} alignItems="center" wrap="wrap">
          <Button type="submit" icon={saving ? 'spinner' : undefined} disabled={!changed || !valid || saving}>
            Save
          </Button>
          <Button type="button" variant="secondary" disabled={!changed || saving} onClick={form.discard}>
            Discard changes
          </Button>
          {actions}
          <span role="status" className={changed ? styles.unsaved : undefined}>
            {words(changed, saved)}
          </span>
        </Stack>
        {result && <div className={styles.result}>{result}</div>}
      </FieldSet>
    </form>
  );
}

function words(changed: boolean, saved: boolean): string {
  if (changed) {
    return 'Unsaved changes';
  }
  return saved ? 'Saved' : '';
}

const getStyles = (theme: GrafanaTheme2) => ({
  form: css({ maxWidth: 640 }),
  description: css({ color: theme.colors.text.secondary }),
  unsaved: css({ color: theme.colors.warning.text, fontWeight: theme.typography.fontWeightMedium }),
  result: css({ marginTop: theme.spacing(2) }),
});
