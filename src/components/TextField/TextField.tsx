import { useId, type ComponentProps } from 'react';

import { Field, Input } from '@grafana/ui';

interface TextFieldProps extends Omit<ComponentProps<typeof Input>, 'id' | 'label' | 'value' | 'onChange'> {
  label: string;
  description?: string;
  error?: string;
  value: string;
  onChange(value: string): void;
}

/** An input for a text or a number, below its label. */
export function TextField({ label, description, error, value, onChange, ...input }: TextFieldProps) {
  const id = useId();
  return (
    <Field noMargin label={label} description={description} htmlFor={id} invalid={error !== undefined} error={error}>
      <Input {...input} id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)} />
    </Field>
  );
}
