import React, { useEffect, useState } from 'react';

import { Alert, Button, Checkbox, Field, Input, RadioButtonGroup, SecretInput, SecretTextArea } from '@grafana/ui';

import { Form } from './Form';
import {
  savePluginSettings,
  testConnection,
  type Health,
  type OperatorRole,
  type PluginSecrets,
  type StoredSettings,
} from './pluginSettings';
import { useForm, type Editing } from './useForm';

interface ConnectionFormProps {
  stored: StoredSettings;
  onChanged(changed: boolean): void;
  /** Something was stored; it is to be read again. */
  onSaved(): Promise<void>;
}

/** What the fields hold. A secret is undefined while it stays as it is. */
interface Values {
  sidecarUrl: string;
  operatorRole: OperatorRole;
  tlsSkipVerify: boolean;
  tlsAuthWithCACert: boolean;
  serverName: string;
  token?: string;
  tlsCACert?: string;
}

/** The app's own settings: where the load generator is, and who may operate it. */
export function ConnectionForm({ stored, onChanged, onSaved }: ConnectionFormProps) {
  const [health, setHealth] = useState<Health | 'testing'>();
  const test = async () => {
    setHealth('testing');
    setHealth(await testConnection());
  };
  const form = useForm<Values>(toValues(stored), async ({ token, tlsCACert, ...jsonData }) => {
    await savePluginSettings(stored, jsonData, given({ token, tlsCACert }));
    await onSaved();
    void test();
  });
  const { changed } = form;
  useEffect(() => onChanged(changed), [changed, onChanged]);
  const urlError = checkURL(form.values.sidecarUrl);
  return (
    <>
      <Form
        title="Connection"
        description="Where the load generator is, and who may start, stop and steer it."
        form={form}
        valid={!urlError}
        problem={form.problem?.message}
        actions={
          <Button
            type="button"
            variant="secondary"
            icon={health === 'testing' ? 'spinner' : undefined}
            disabled={changed || health === 'testing'}
            title={changed ? 'Save first: what is tested is what is saved' : undefined}
            onClick={test}
          >
            Test connection
          </Button>
        }
        result={health && health !== 'testing' && !changed ? <TestResult health={health} /> : undefined}
      >
        <Reach form={form} stored={stored} urlError={urlError} />
        <TLS form={form} stored={stored} />
      </Form>
    </>
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
  form: Editing<Values>;
  stored: StoredSettings;
}

const roles = (['Editor', 'Admin'] as const).map((value) => ({
  value,
  label: value === 'Editor' ? 'Editors and admins' : 'Admins only',
}));

function Reach({ form, stored, urlError }: PartProps & { urlError?: string }) {
  const { values, set } = form;
  return (
    <>
      <Field
        label="Load generator URL"
        description="As Grafana’s server reaches it."
        htmlFor="sidecar-url"
        required
        invalid={Boolean(urlError)}
        error={urlError}
      >
        <Input
          id="sidecar-url"
          placeholder="http://127.0.0.1:8088"
          value={values.sidecarUrl}
          onChange={(event) => set({ sidecarUrl: event.currentTarget.value })}
        />
      </Field>
      <Field label="Token" description="Only if the load generator was given one." htmlFor="sidecar-token">
        <SecretInput
          id="sidecar-token"
          autoComplete="off"
          isConfigured={isKept(values.token, stored.secureJsonFields.token)}
          value={values.token ?? ''}
          onChange={(event) => set({ token: event.currentTarget.value })}
          onReset={() => set({ token: '' })}
        />
      </Field>
      <Field label="Who may operate" description="Everybody sees; only admins configure.">
        <RadioButtonGroup
          aria-label="Who may operate"
          options={roles}
          value={values.operatorRole}
          onChange={(operatorRole) => set({ operatorRole })}
        />
      </Field>
    </>
  );
}

function TLS({ form, stored }: PartProps) {
  const { values, set } = form;
  return (
    <>
      <Field noMargin>
        <Checkbox
          label="Skip TLS verification"
          description="Trusts any certificate. For tests only."
          value={values.tlsSkipVerify}
          onChange={(event) => set({ tlsSkipVerify: event.currentTarget.checked })}
        />
      </Field>
      <Field>
        <Checkbox
          label="Own certificate authority"
          description="For a certificate that the system does not know."
          value={values.tlsAuthWithCACert}
          onChange={(event) => set({ tlsAuthWithCACert: event.currentTarget.checked })}
        />
      </Field>
      {values.tlsAuthWithCACert && (
        <Field label="CA certificate" htmlFor="tls-ca">
          <SecretTextArea
            id="tls-ca"
            rows={5}
            placeholder="-----BEGIN CERTIFICATE-----"
            isConfigured={isKept(values.tlsCACert, stored.secureJsonFields.tlsCACert)}
            value={values.tlsCACert ?? ''}
            onChange={(event) => set({ tlsCACert: event.currentTarget.value })}
            onReset={() => set({ tlsCACert: '' })}
          />
        </Field>
      )}
      <Field
        label="Server name"
        description="If the certificate is for another name than the URL’s."
        htmlFor="tls-name"
      >
        <Input
          id="tls-name"
          value={values.serverName}
          onChange={(event) => set({ serverName: event.currentTarget.value })}
        />
      </Field>
    </>
  );
}

function toValues({ jsonData }: StoredSettings): Values {
  return {
    sidecarUrl: jsonData.sidecarUrl ?? '',
    operatorRole: jsonData.operatorRole ?? 'Editor',
    tlsSkipVerify: jsonData.tlsSkipVerify ?? false,
    tlsAuthWithCACert: jsonData.tlsAuthWithCACert ?? false,
    serverName: jsonData.serverName ?? '',
  };
}

function isKept(entered: string | undefined, stored: boolean | undefined): boolean {
  return entered === undefined && stored === true;
}

function given(secrets: PluginSecrets): PluginSecrets {
  return Object.fromEntries(Object.entries(secrets).filter(([, value]) => value !== undefined));
}

function checkURL(text: string): string | undefined {
  const fine = /^https?:\/\/[^\s/?#@]+(\/[^\s?#]*)?$/.test(text.trim());
  return fine ? undefined : 'http:// or https://, a host, and perhaps a port and a path';
}
