import { zodResolver } from '@hookform/resolvers/zod';
import { useQueryClient } from '@tanstack/react-query';
import { Controller, useForm, type Control } from 'react-hook-form';

import { Button, Combobox, Field, Input, Stack, type ComboboxOption } from '@grafana/ui';

import {
  asProblem,
  listBaselines,
  patchSettings,
  readSettings,
  useClient,
  usePolled,
  type Baseline,
  type Polled,
  type Settings,
} from '../client';
import { LoadProblem, NotLoaded } from '../components/Loading';
import type { VendorName } from '../vendor';
import { FOLLOW_STORED, Form } from './Form';
import { fieldOf, withFieldLabel, labels, schema, toValues, type FieldName, type Values } from './sidecarFields';

const KEY = 'settings';

/** The form of the load generator's own settings, which the load generator stores. */
export function SidecarForm({ onChanged }: { onChanged(changed: boolean): void }) {
  const client = useClient();
  const queries = useQueryClient();
  const read = async () => {
    const [settings, baselines] = await Promise.all([readSettings(client), listBaselines(client)]);
    return { settings, baselines };
  };
  const { value, problem } = usePolled(read, false, KEY);
  const accept = (settings: Settings) =>
    queries.setQueryData<Polled<Read>>([KEY], (now) => ({
      value: { baselines: now?.value?.baselines ?? [], settings },
    }));
  return (
    <>
      <LoadProblem what="load generator’s settings" problem={problem}>
        <Button variant="secondary" size="sm" onClick={() => queries.invalidateQueries({ queryKey: [KEY] })}>
          Try again
        </Button>
      </LoadProblem>
      {!problem && !value && <NotLoaded what="load generator’s settings" />}
      {value && <Fields {...value} onChanged={onChanged} onSaved={accept} />}
    </>
  );
}

interface Read {
  settings: Settings;
  baselines: Baseline[];
}

interface FieldsProps extends Read {
  onChanged(changed: boolean): void;
  onSaved(settings: Settings): void;
}

function Fields({ settings, baselines, onChanged, onSaved }: FieldsProps) {
  const client = useClient();
  const form = useForm({ ...FOLLOW_STORED, values: toValues(settings), resolver: zodResolver(schema) });
  const { dirtyFields } = form.formState;
  const save = async (entered: Settings) => {
    const changed = Object.entries(entered).filter(([name]) => name in dirtyFields);
    const next = await patchSettings(client, Object.fromEntries(changed)).catch((error: unknown) => {
      throw withFieldLabel(asProblem(error));
    });
    onSaved(next);
    return toValues(next);
  };
  const text = (name: FieldName, { deps, ...more }: TextOptions = {}) => {
    const error = form.getFieldState(name, form.formState).error?.message;
    return (
      <Field label={labels[name]} htmlFor={`sidecar-${name}`} invalid={Boolean(error)} error={error}>
        <Input id={`sidecar-${name}`} {...more} {...form.register(name, { deps })} />
      </Field>
    );
  };
  return (
    <Form
      title="Load generator"
      description="Stored by the load generator, for everyone who uses it. Changes take effect immediately."
      form={form}
      save={save}
      fieldOf={fieldOf}
      onChanged={onChanged}
    >
      <Stack direction="row" gap={2} wrap="wrap">
        {text('slo.ttft', { suffix: 'ms', width: 20 })}
        {text('slo.tpot', { suffix: 'ms', width: 20 })}
      </Stack>
      <Stack direction="row" gap={2} wrap="wrap">
        {text('slider.min', { width: 14 })}
        {text('slider.max', { width: 14, deps: 'slider.min' })}
        {text('slider.increment', { width: 14 })}
        {text('max_concurrency', { width: 18 })}
      </Stack>
      <ChoiceField
        control={form.control}
        name="default_baseline"
        options={[automatic, ...baselines.map(({ name, title }) => ({ value: name, label: title, description: name }))]}
      />
      {text('title')}
      {text('subtitle')}
      <ChoiceField
        control={form.control}
        name="vendor"
        description="The platform described in the guide and on the architecture page."
        options={vendorOptions}
      />
    </Form>
  );
}

interface TextOptions {
  suffix?: string;
  width?: number;
  /** A further field whose value this one can make invalid. */
  deps?: FieldName;
}

const automatic: ComboboxOption = {
  value: '',
  label: 'Automatic',
  description: 'The recorded results of this deployment, or else this target’s own measurements',
};

type FieldControl = Control<Values, unknown, Settings>;

/** Every vendor with its name for administrators. */
const vendorTexts: Record<VendorName, Omit<ComboboxOption<VendorName>, 'value'>> = {
  neutral: { label: 'Neutral', description: 'For any cluster' },
  digitalocean: { label: 'DigitalOcean', description: 'What the recorded results were measured on' },
};
const vendorOptions = (Object.keys(vendorTexts) as VendorName[]).map((value) => ({ value, ...vendorTexts[value] }));

interface ChoiceFieldProps {
  control: FieldControl;
  name: 'default_baseline' | 'vendor';
  description?: string;
  options: ComboboxOption[];
}

function ChoiceField({ control, name, description, options }: ChoiceFieldProps) {
  const id = `sidecar-${name}`;
  return (
    <Controller
      control={control}
      name={name}
      render={({ field: { value, onChange }, fieldState: { error } }) => (
        <Field
          label={labels[name]}
          description={description}
          htmlFor={id}
          invalid={Boolean(error)}
          error={error?.message}
        >
          <Combobox
            id={id}
            options={options.some((option) => option.value === value) ? options : [...options, { value, label: value }]}
            value={value}
            onChange={(option) => onChange(option.value)}
          />
        </Field>
      )}
    />
  );
}
