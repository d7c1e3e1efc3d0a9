import React, { useState } from 'react';
import { zodResolver } from '@hookform/resolvers/zod';
import { Controller, useController, useForm, type Control, type UseFormReturn } from 'react-hook-form';
import { z } from 'zod';

import { Alert, Button, Checkbox, Field, Input, RadioButtonGroup, SecretInput, SecretTextArea } from '@grafana/ui';

import { Form, FOLLOW_STORED } from './Form';
import { savePluginSettings, testConnection, type Health, type StoredSettings } from './pluginSettings';

interface ConnectionFormProps {
  stored: StoredSettings;
  onChanged(changed: boolean): void;
  /** Something was stored; it is to be read again. */
  onSaved(): Promise<void>;
}

const schema = z.object({
  sidecarUrl: z
    .string()
    .trim()
    .regex(/^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/, 'http:// or https://, a host, and perhaps a port and a path'),
  operatorRole: z.enum(['Editor', 'Admin']),
  tlsSkipVerify: z.boolean(),
  tlsAuthWithCACert: z.boolean(),
  serverName: z.string(),
  // A secret is null while it stays as it is.
  token: z.string().nullable(),
  tlsCACert: z.string().nullable(),
});

/** What the fields hold. */
type Values = z.infer<typeof schema>;

/** The app's own settings: where the load generator is, and who may operate it. */
export function ConnectionForm({ stored, onChanged, onSaved }: ConnectionFormProps) {
  const [health, setHealth] = useState<Health | 'testing'>();
  const test = async () => {
    setHealth('testing');
    setHealth(await testConnection());
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
      description="Where the load generator is, and who may start, stop and steer it."
      form={form}
      save={save}
      onChanged={onChanged}
      actions={
        <Button
          type="button"
          variant="secondary"
          icon={health === 'testing' ? 'spinner' : undefined}
          disabled={isDirty || health === 'testing'}
          title={isDirty ? 'Save first: what is tested is what is saved' : undefined}
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
    <Alert severity={ok ? 'success' : 'error'} title={ok ? 'The connection works' : 'The connection does not work'}>
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
        description="As Grafana’s server reaches it."
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
            ? 'The stored token is for the stored URL alone. Enter the one for this URL.'
            : 'Only if the load generator was given one.'
        }
        htmlFor="sidecar-token"
      >
        <SecretInput id="sidecar-token" autoComplete="off" {...token} isConfigured={token.isConfigured && !elsewhere} />
      </Field>
      <Field label="Who may operate" description="Everybody sees; only admins configure.">
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
          description="Trusts any certificate. For tests only."
          {...form.register('tlsSkipVerify')}
        />
      </Field>
      <Field>
        <Checkbox
          label="Own certificate authority"
          description="For a certificate that the system does not know."
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
        description="If the certificate is for another name than the URL’s."
        htmlFor="tls-name"
      >
        <Input id="tls-name" {...form.register('serverName')} />
      </Field>
    </>
  );
}

/** Whether the URL is another one than that which the stored token was entered for. */
function moved({ jsonData }: StoredSettings, url: string): boolean {
  const bare = (text: string) => text.trim().replace(/\/+$/, '');
  return bare(url) !== bare(jsonData.sidecarUrl ?? '');
}

/** What a field of a secret needs: one that is stored is not shown, and stays until it is reset. */
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
