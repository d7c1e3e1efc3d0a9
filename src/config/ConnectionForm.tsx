import { useState } from 'react';
import { zodResolver } from '@hookform/resolvers/zod';
import { Controller, useController, useForm, type Control, type UseFormReturn } from 'react-hook-form';
import { z } from 'zod';

import { Alert, Button, Checkbox, Field, Input, RadioButtonGroup, SecretInput, SecretTextArea } from '@grafana/ui';

import { useLatest } from '../lib/useStable';
import { Form, FOLLOW_STORED } from './Form';
import { savePluginSettings, testConnection, type Health, type StoredSettings } from './pluginSettings';

interface ConnectionFormProps {
  stored: StoredSettings;
  onChanged(changed: boolean): void;
  /** Called after settings were stored, which then have to be read again. */
  onSaved(): Promise<void>;
}

const schema = z.object({
  sidecarUrl: z
    .string()
    .trim()
    .regex(/^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/, 'http:// or https://, a host, and optionally a port and a path'),
  operatorRole: z.enum(['Editor', 'Admin']),
  tlsSkipVerify: z.boolean(),
  tlsAuthWithCACert: z.boolean(),
  serverName: z.string(),
  // A secret is null while it is unchanged.
  token: z.string().nullable(),
  tlsCACert: z.string().nullable(),
});

type Values = z.infer<typeof schema>;

/** The form of the app's own settings: the load generator's address, and who may operate it. */
export function ConnectionForm({ stored, onChanged, onSaved }: ConnectionFormProps) {
  const [health, setHealth] = useState<Health | 'testing'>();
  const begin = useLatest();
  const test = async () => {
    const isLatest = begin();
    setHealth('testing');
    const found = await testConnection();
    if (isLatest()) {
      setHealth(found);
    }
  };
  const form = useForm({ ...FOLLOW_STORED, values: toValues(stored), resolver: zodResolver(schema) });
  const { isDirty } = form.formState;
  const save = async (values: Values) => {
    const { token, tlsCACert, ...jsonData } = values;
    const forgotten = token === null && moved(stored, values.sidecarUrl);
    await savePluginSettings(stored, jsonData, {
      ...(forgotten && { token: '' }),
      ...(token !== null && { token: token && `${values.sidecarUrl} ${token}` }),
      ...(tlsCACert !== null && { tlsCACert }),
    });
    await onSaved();
    void test();
    return { ...values, token: null, tlsCACert: null };
  };
  return (
    <Form
      title="Connection"
      description="The load generator’s URL, and who may start, stop and control it."
      form={form}
      save={save}
      onChanged={onChanged}
      actions={
        <Button
          type="button"
          variant="secondary"
          icon={health === 'testing' ? 'spinner' : undefined}
          disabled={isDirty || health === 'testing'}
          title={isDirty ? 'Save first: the test uses the saved settings' : undefined}
          onClick={test}
        >
          Test connection
        </Button>
      }
      result={health && health !== 'testing' && !isDirty ? <TestResult health={health} /> : undefined}
    >
      <Reach form={form} stored={stored} />
      <TLS form={form} stored={stored} />
    </Form>
  );
}

function TestResult({ health: { ok, message } }: { health: Health }) {
  return (
    <Alert severity={ok ? 'success' : 'error'} title={ok ? 'The connection works' : 'The connection failed'}>
      {message}
    </Alert>
  );
}

interface PartProps {
  form: UseFormReturn<Values>;
  stored: StoredSettings;
}

const roles = (['Editor', 'Admin'] as const).map((value) => ({
  value,
  label: value === 'Editor' ? 'Editors and admins' : 'Admins only',
}));

function Reach({ form, stored }: PartProps) {
  const error = form.formState.errors.sidecarUrl?.message;
  const token = useSecret(form.control, 'token', stored);
  const elsewhere = moved(stored, form.watch('sidecarUrl'));
  return (
    <>
      <Field
        label="Load generator URL"
        description="As reachable from the Grafana server."
        htmlFor="sidecar-url"
        required
        invalid={Boolean(error)}
        error={error}
      >
        <Input id="sidecar-url" placeholder="http://127.0.0.1:8088" {...form.register('sidecarUrl')} />
      </Field>
      <Field
        label="Token"
        description={
          elsewhere && stored.secureJsonFields.token
            ? 'The stored token is only valid for the stored URL. Enter the token for this URL.'
            : 'Only if the load generator requires one.'
        }
        htmlFor="sidecar-token"
      >
        <SecretInput id="sidecar-token" autoComplete="off" {...token} isConfigured={token.isConfigured && !elsewhere} />
      </Field>
      <Field label="Who may operate" description="Everyone can view; only admins configure.">
        <Controller
          control={form.control}
          name="operatorRole"
          render={({ field: { value, onChange } }) => (
            <RadioButtonGroup aria-label="Who may operate" options={roles} value={value} onChange={onChange} />
          )}
        />
      </Field>
    </>
  );
}

function TLS({ form, stored }: PartProps) {
  const certificate = useSecret(form.control, 'tlsCACert', stored);
  return (
    <>
      <Field noMargin>
        <Checkbox
          label="Skip TLS verification"
          description="Accepts any certificate. For testing only."
          {...form.register('tlsSkipVerify')}
        />
      </Field>
      <Field>
        <Checkbox
          label="Custom certificate authority"
          description="For a certificate not signed by a CA the system trusts."
          {...form.register('tlsAuthWithCACert')}
        />
      </Field>
      {form.watch('tlsAuthWithCACert') && (
        <Field label="CA certificate" htmlFor="tls-ca">
          <SecretTextArea id="tls-ca" rows={5} placeholder="-----BEGIN CERTIFICATE-----" {...certificate} />
        </Field>
      )}
      <Field
        label="Server name"
        description="If the certificate is for a different name than the URL’s host."
        htmlFor="tls-name"
      >
        <Input id="tls-name" {...form.register('serverName')} />
      </Field>
    </>
  );
}

/** Reports whether the URL differs from the one for which the stored token was entered. */
function moved({ jsonData }: StoredSettings, url: string): boolean {
  const bare = (text: string) => text.trim().replace(/\/+$/, '');
  return bare(url) !== bare(jsonData.sidecarUrl ?? '');
}

/** The props of a secret's field. A stored secret is not shown, and is kept until it is reset. */
function useSecret(control: Control<Values>, name: 'token' | 'tlsCACert', { secureJsonFields }: StoredSettings) {
  const { value, onChange } = useController({ control, name }).field;
  const isConfigured = value === null && secureJsonFields[name] === true;
  return { value: value ?? '', onChange, isConfigured, onReset: () => onChange('') };
}

function toValues({ jsonData }: StoredSettings): Values {
  return {
    sidecarUrl: jsonData.sidecarUrl ?? '',
    operatorRole: jsonData.operatorRole ?? 'Editor',
    tlsSkipVerify: jsonData.tlsSkipVerify ?? false,
    tlsAuthWithCACert: jsonData.tlsAuthWithCACert ?? false,
    serverName: jsonData.serverName ?? '',
    token: null,
    tlsCACert: null,
  };
}
