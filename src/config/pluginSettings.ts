import { lastValueFrom } from 'rxjs';

import { getBackendSrv, isFetchError } from '@grafana/runtime';

import { asProblem } from '../client';
import { PLUGIN_ID } from '../client/grafana';
import benchmarks from '../panels/benchmarks/plugin.json';
import comparison from '../panels/comparison/plugin.json';
import controls from '../panels/controls/plugin.json';
import routers from '../panels/routers/plugin.json';
import { toProblem } from '../client/problem';

/** What Grafana keeps of the app, readable. The names of the TLS options are those of Grafana's own HTTP options. */
export interface PluginSettings {
  /** The load generator's URL. */
  sidecarUrl?: string;
  /** The least role that may start, stop and steer. */
  operatorRole?: OperatorRole;
  tlsSkipVerify?: boolean;
  tlsAuthWithCACert?: boolean;
  /** The name that the certificate is for, where it is not the URL's. */
  serverName?: string;
}

/** Who may operate, beside administrators. */
type OperatorRole = 'Editor' | 'Admin';

/** What Grafana keeps of the app, unreadable. */
interface PluginSecrets {
  /** The URL that the token was entered for, a space, and the token: it is sent nowhere else. */
  token?: string;
  tlsCACert?: string;
}

/** The app's settings as Grafana gives them. */
export interface StoredSettings {
  enabled: boolean;
  pinned: boolean;
  jsonData: PluginSettings;
  /** Which of the secrets there are. */
  secureJsonFields: Partial<Record<keyof PluginSecrets, boolean>>;
}

/** How a test of the connection came out. */
export interface Health {
  ok: boolean;
  /** The backend's words. */
  message: string;
}

const settingsURL = `/api/plugins/${PLUGIN_ID}/settings`;

/** Reads the settings. It rejects with a Problem. */
export async function readPluginSettings(): Promise<StoredSettings> {
  const stored = await call<Partial<StoredSettings>>('GET', settingsURL);
  return {
    enabled: stored.enabled ?? false,
    pinned: stored.pinned ?? false,
    jsonData: stored.jsonData ?? {},
    secureJsonFields: stored.secureJsonFields ?? {},
  };
}

/**
 * Stores the settings; what this page does not know of stays. A secret that is
 * not given stays too, an empty one is deleted. It rejects with a Problem.
 */
export async function savePluginSettings(
  stored: StoredSettings,
  jsonData: PluginSettings,
  secureJsonData: PluginSecrets
): Promise<void> {
  const { enabled, pinned } = stored;
  await call('POST', settingsURL, {
    enabled,
    pinned,
    jsonData: { ...stored.jsonData, ...jsonData },
    secureJsonData,
  });
}

/** Asks the backend what it finds when it goes all the way to the target. It never rejects. */
export async function testConnection(): Promise<Health> {
  try {
    const { status, message } = await call<{ status: string; message: string }>(
      'GET',
      `/api/plugins/${PLUGIN_ID}/health`
    );
    return { ok: status === 'OK', message };
  } catch (error) {
    return { ok: false, message: asProblem(error).message };
  }
}

/** The plugins that the app consists of, each of which a Grafana that allow-lists unsigned plugins has to allow. */
export const PLUGIN_IDS = [PLUGIN_ID, controls.id, comparison.id, benchmarks.id, routers.id];

/**
 * The ids of the app's panels that Grafana has not loaded, and shows blank. Its answer is
 * then that they do not exist, or have no signature; any other answer is ignored. missingPanels never rejects.
 */
export async function missingPanels(): Promise<string[]> {
  const missing = PLUGIN_IDS.slice(1).map(async (id) => {
    try {
      await call('GET', `/api/plugins/${id}/settings`);
      return [];
    } catch (error) {
      const { status, message } = asProblem(error);
      return status === 404 || /signature/i.test(message) ? [id] : [];
    }
  });
  return (await Promise.all(missing)).flat();
}

async function call<T>(method: string, url: string, data?: unknown): Promise<T> {
  try {
    const answer = getBackendSrv().fetch<T>({ url, method, data, showErrorAlert: false, showSuccessAlert: false });
    return (await lastValueFrom(answer)).data;
  } catch (error) {
    throw isFetchError(error) ? toProblem(error.status, error.data) : toProblem(0, error);
  }
}
