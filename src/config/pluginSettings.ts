import { asProblem } from '../client';
import { askGrafana, PLUGIN_ID } from '../client/grafana';
import app from '../plugin.json';

/** The app's settings that Grafana stores in clear. The TLS options have the names of Grafana's HTTP options. */
export interface PluginSettings {
  sidecarUrl?: string;
  /** The lowest role that may start, stop and steer. */
  operatorRole?: OperatorRole;
  tlsSkipVerify?: boolean;
  tlsAuthWithCACert?: boolean;
  /** The name in the certificate, where it differs from the URL's. */
  serverName?: string;
}

/** Who may operate, besides administrators. */
type OperatorRole = 'Editor' | 'Admin';

/** The app's secrets, which Grafana stores encrypted. */
interface PluginSecrets {
  /** The URL for which the token was entered, a space, and the token. The token is sent to no other URL. */
  token?: string;
  tlsCACert?: string;
}

/** The app's settings as Grafana returns them. */
export interface StoredSettings {
  enabled: boolean;
  pinned: boolean;
  jsonData: PluginSettings;
  secureJsonFields: Partial<Record<keyof PluginSecrets, boolean>>;
}

/** The result of a connection test. */
export interface Health {
  ok: boolean;
  /** The text of the backend. */
  message: string;
}

const settingsURL = `/api/plugins/${PLUGIN_ID}/settings`;

/** Reads the settings. It rejects with a Problem. */
export async function readPluginSettings(): Promise<StoredSettings> {
  const stored = await askGrafana<Partial<StoredSettings>>('GET', settingsURL);
  return {
    enabled: stored.enabled ?? false,
    pinned: stored.pinned ?? false,
    jsonData: stored.jsonData ?? {},
    secureJsonFields: stored.secureJsonFields ?? {},
  };
}

/**
 * Stores the settings. Fields that this page does not show are kept, and so are secrets that are not given. An empty
 * secret is deleted. It rejects with a Problem.
 */
export async function savePluginSettings(
  stored: StoredSettings,
  jsonData: PluginSettings,
  secureJsonData: PluginSecrets
): Promise<void> {
  const { enabled, pinned } = stored;
  await askGrafana('POST', settingsURL, {
    enabled,
    pinned,
    jsonData: { ...stored.jsonData, ...jsonData },
    secureJsonData,
  });
}

/** Returns the backend's check of the whole path to the target. It never rejects. */
export async function testConnection(): Promise<Health> {
  try {
    const { status, message } = await askGrafana<{ status: string; message: string }>(
      'GET',
      `/api/plugins/${PLUGIN_ID}/health`
    );
    return { ok: status === 'OK', message };
  } catch (error) {
    return { ok: false, message: asProblem(error).message };
  }
}

/** The app's panels, by the folders that its plugin.json includes: panels/NAME has the panel kvbooth-NAME-panel. */
const PANEL_IDS = app.includes
  .filter(({ type }) => type === 'panel')
  .map(({ path }) => `kvbooth-${path.split('/')[1]}-panel`);

/** The plugins of the app. A Grafana that allow-lists unsigned plugins has to allow each of them. */
export const PLUGIN_IDS = [PLUGIN_ID, ...PANEL_IDS];

/**
 * Returns the ids of the app's panels that Grafana has not loaded and shows blank. Grafana answers for them that they
 * do not exist or have no signature; any other answer is ignored. missingPanels never rejects.
 */
export async function missingPanels(): Promise<string[]> {
  const missing = PANEL_IDS.map(async (id) => {
    try {
      await askGrafana('GET', `/api/plugins/${id}/settings`);
      return [];
    } catch (error) {
      const { status, message } = asProblem(error);
      return status === 404 || /signature/i.test(message) ? [id] : [];
    }
  });
  return (await Promise.all(missing)).flat();
}
