/** The app's configuration, and the panels that follow it. */
import { call, env, grafanaCall, eventually } from './booth.mjs';
import { expect, test } from './journey.mjs';
import { ConfigPage, Dashboard, open } from './pages.mjs';

const SETTINGS = '/api/plugins/kvbooth-inference-app/settings';

test(
  'an app that is not configured leads to its configuration, from the pages and the panels',
  { tag: '@gate' },
  async ({ visit }) => {
    const { enabled, pinned, jsonData } = await (await grafanaCall('GET', SETTINGS)).json();
    const configure = async (json, secureJsonData) => {
      const answer = await grafanaCall('POST', SETTINGS, { enabled, pinned, jsonData: json, secureJsonData });
      expect(answer.status, await answer.text()).toBe(200);
    };
    const configured = async () =>
      (await (await grafanaCall('GET', '/api/plugins/kvbooth-inference-app/resources/me')).json()).configured;
    await configure({ ...jsonData, sidecarUrl: '' });
    try {
      // Grafana caches the settings for 5 s.
      await eventually('the backend has the new settings', async () => (await configured()) === false);
      // A request before the settings are known is refused.
      const expected = [/503 .*\/resources\//];
      const viewer = await visit({ login: 'viewer', expected });
      const panels = ['Workload controls', 'Live against baseline'].map((name) => viewer.getByRole('group', { name }));
      await open(viewer, '/d/kvbooth-booth?theme=light', panels[0]);
      for (const panel of panels) {
        await expect(panel).toContainText('Ask a Grafana administrator to enter the Load generator URL');
      }

      const page = await visit({ login: 'admin', expected });
      const link = page.getByRole('link', { name: 'Open the configuration page' });
      await open(page, '/a/kvbooth-inference-app?theme=dark', link);
      await expect(page.getByText('The load generator is unreachable')).toHaveCount(0);
      await link.click();
      const config = new ConfigPage(page);
      await expect(config.url).toHaveValue('');
      await expect(page.getByText(/is not allowed|could not be loaded/)).toHaveCount(0);

      await config.url.fill(env.loadgen);
      await config.connection.locator('#sidecar-token').fill(env.token);
      expect(await config.save()).toMatch(/The connection works/);
      await config.loadgen.waitFor();
      await new Dashboard(viewer).controls.says(/Stopped/, 30_000);
    } finally {
      await configure(jsonData, { token: `${env.loadgen} ${env.token}` });
    }
  }
);

test(
  'a wrong token is reported in words, here and in the panels, which go on with the right one',
  { tag: '@gate' },
  async ({ visit }) => {
    const { controls } = await Dashboard.open(await visit(), 'kvbooth-booth');
    await controls.says(/Stopped/);
    const config = await ConfigPage.open(
      await visit({ login: 'admin', expected: [/\/(health|resources\/(settings|baselines))\)$/] })
    );
    expect(await config.test()).toMatch(/The connection works.*Load generator .* answers at/);

    await config.enterToken('wrong');
    expect(await config.save()).toMatch(/connection failed.*token/i);
    await controls.says(/Load generator lost/);
    await eventually('the panel names the token', async () => /token/i.test(await controls.root.innerText()));

    await config.enterToken(env.token);
    expect(await config.save()).toMatch(/The connection works/);
    await controls.says(/Stopped/);
  }
);

test('a setting of the load generator is saved, and the panels follow', { tag: '@gate' }, async ({ visit }) => {
  const booth = await Dashboard.open(await visit(), 'kvbooth-booth');
  const shows = (text) => eventually(text, async () => (await booth.comparison.root.innerText()).includes(text));
  await shows('TTFT p95 ≤ 600 ms');
  const config = await ConfigPage.open(await visit({ login: 'admin' }));
  try {
    await config.loadgen.getByLabel('SLO of TTFT p95').fill('700');
    await config.loadgen.getByRole('button', { name: 'Save' }).click();
    await shows('TTFT p95 ≤ 700 ms');
  } finally {
    await call('PATCH', '/api/v1/settings', { slo: { ttft: 0.6, tpot: 0.06 } });
  }
});
