import React, { useEffect, useState } from 'react';

import { Alert, Button, Combobox, Field, Input, LoadingPlaceholder, Stack, type ComboboxOption } from '@grafana/ui';

import {
  asProblem,
  listBaselines,
  patchSettings,
  readSettings,
  useClient,
  type Baseline,
  type Settings,
} from '../client';
import { Form } from './Form';
import { check, fieldOf, toPatch, toValues, type FieldName, type Values } from './sidecarFields';
import { useForm } from './useForm';

interface SidecarFormProps {
  /** Counts up whenever the settings are to be read anew. */
  generation: number;
  onChanged(changed: boolean): void;
}

/** The load generator's own settings, which it keeps itself. */
export function SidecarForm({ generation, onChanged }: SidecarFormProps) {
  const client = useClient();
  const [settings, setSettings] = useState<Settings>();
  const [baselines, setBaselines] = useState<Baseline[]>([]);
  const [problem, setProblem] = useState<string>();
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let current = true;
    Promise.all([readSettings(client), listBaselines(client)]).then(
      ([read, all]) => {
        if (current) {
          setSettings(read);
          setBaselines(all);
          setProblem(undefined);
        }
      },
      (error: unknown) => current && setProblem(asProblem(error).message)
    );
    return () => {
      current = false;
    };
  }, [client, generation, attempt]);

  return (
    <>
      {problem && (
        <Alert severity="warning" title="The load generator’s settings cannot be read">
          <p>{problem}</p>
          <Button variant="secondary" onClick={() => setAttempt(attempt + 1)}>
            Try again
          </Button>
        </Alert>
      )}
      {!problem && !settings && <LoadingPlaceholder text="Asking the load generator for its settings…" />}
      {settings && <Fields settings={settings} baselines={baselines} onChanged={onChanged} onSaved={setSettings} />}
    </>
  );
}

interface FieldsProps {
  settings: Settings;
  baselines: Baseline[];
  onChanged(changed: boolean): void;
  onSaved(settings: Settings): void;
}

function Fields({ settings, baselines, onChanged, onSaved }: FieldsProps) {
  const client = useClient();
  const stored = toValues(settings);
  const form = useForm<Values>(stored, async (values) => onSaved(await patchSettings(client, toPatch(values, stored))));
  const { changed, values, problem } = form;
  useEffect(() => onChanged(changed), [changed, onChanged]);
  const errors = check(values);
  const refused = fieldOf(problem?.field);
  const text = (name: FieldName, label: string, more: Partial<TextFieldProps> = {}) => (
    <TextField
      label={label}
      id={name}
      value={values[name]}
      error={errors[name] ?? (refused === name ? problem?.message : undefined)}
      onChange={(value) => form.set({ [name]: value })}
      {...more}
    />
  );
  return (
    <Form
      title="Load generator"
      description="Kept by the load generator, for everybody who uses it. Changes take effect at once."
      form={form}
      valid={Object.keys(errors).length === 0}
      problem={refused ? undefined : problem?.message}
    >
      <Stack direction="row" gap={2} wrap="wrap">
        {text('sloTTFT', 'SLO of TTFT p95', { suffix: 'ms', width: 20 })}
        {text('sloTPOT', 'SLO of TPOT p95', { suffix: 'ms', width: 20 })}
      </Stack>
      <Stack direction="row" gap={2} wrap="wrap">
        {text('sliderMin', 'Slider from', { width: 14 })}
        {text('sliderMax', 'Slider to', { width: 14 })}
        {text('sliderIncrement', 'Slider increment', { width: 14 })}
        {text('maxConcurrency', 'Highest concurrency', { width: 18 })}
      </Stack>
      <BaselineField
        value={values.defaultBaseline}
        baselines={baselines}
        error={refused === 'defaultBaseline' ? problem?.message : undefined}
        onChange={(defaultBaseline) => form.set({ defaultBaseline })}
      />
      {text('title', 'Title')}
      {text('subtitle', 'Subtitle')}
    </Form>
  );
}

interface TextFieldProps {
  label: string;
  id: string;
  value: string;
  error?: string;
  suffix?: string;
  width?: number;
  onChange(value: string): void;
}

function TextField({ label, id, value, error, suffix, width, onChange }: TextFieldProps) {
  return (
    <Field label={label} htmlFor={`sidecar-${id}`} invalid={Boolean(error)} error={error}>
      <Input
        id={`sidecar-${id}`}
        suffix={suffix}
        width={width}
        value={value}
        onChange={(event) => onChange(event.currentTarget.value)}
      />
    </Field>
  );
}

interface BaselineFieldProps {
  value: string;
  baselines: Baseline[];
  error?: string;
  onChange(value: string): void;
}

const automatic: ComboboxOption = {
  value: '',
  label: 'Chosen by what serves',
  description: 'The recorded results of this deployment, else this target’s own',
};

function BaselineField({ value, baselines, error, onChange }: BaselineFieldProps) {
  const options = [
    automatic,
    ...baselines.map(({ name, title }) => ({ value: name, label: title, description: name })),
  ];
  const known = options.some((option) => option.value === value);
  return (
    <Field label="Default baseline" htmlFor="sidecar-baseline" invalid={Boolean(error)} error={error}>
      <Combobox
        id="sidecar-baseline"
        options={known ? options : [...options, { value, label: value }]}
        value={value}
        onChange={(option) => onChange(option.value)}
      />
    </Field>
  );
}
