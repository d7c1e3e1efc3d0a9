import { defineConfig } from '@playwright/test';

const { CHROMIUM_PATH, JOURNEYS_OUTPUT, BENCH } = process.env;

/** The journeys through a booth, which the tests in sidecar/test/page and sidecar/test/grafana bring up for a project. */
export default defineConfig({
  testDir: 'tests/browser',
  testMatch: '*.test.mjs',
  outputDir: JOURNEYS_OUTPUT,
  reporter: [['list'], ['junit']], // the second into PLAYWRIGHT_JUNIT_OUTPUT_FILE
  timeout: 300_000,
  expect: { timeout: 60_000 },
  workers: 1, // they steer one workload
  use: {
    launchOptions: {
      executablePath: CHROMIUM_PATH,
      args: [
        '--no-sandbox',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
        '--disable-gpu',
        '--disable-extensions',
      ],
    },
    contextOptions: { reducedMotion: 'reduce' },
    actionTimeout: 60_000,
    navigationTimeout: 120_000,
    video: 'off',
    screenshot: 'only-on-failure',
    // Snapshots of every step made the journeys a fifth to two fifths longer, and are no part of what a benchmark measures.
    trace: BENCH ? 'off' : { mode: 'retain-on-failure', screenshots: false, snapshots: false },
  },
  projects: [
    { name: 'page', testDir: 'tests/browser/page', grepInvert: /@waits|@inside/ },
    { name: 'waits', testDir: 'tests/browser/page', grep: /@waits/ },
    // Inside a Grafana under a path: its own pages, the panels, and of the load generator's pages what goes another way there.
    { name: 'app', grep: /@grafana|@inside|app (apppages|operate|roles|accessibility|together)\./ },
    // At the root, whatever the journeys under a path, those through the looks of the dashboards and those of the phases do not show already.
    {
      name: 'grafana',
      testIgnore: ['**/page/**', '**/{apppages,operate,roles,accessibility,together,kubernetes}.test.mjs'],
      grepInvert: /gtc-demo: no panel fails|a dash in every card before Start/,
    },
    { name: 'kubernetes', testMatch: /browser\/kubernetes\.test\.mjs/ },
    // The pictures of README and docs, which are no test.
    { name: 'pictures', testMatch: 'pictures.mjs' },
    // What holds against any target, but for what none has a part in.
    {
      name: 'anywhere',
      testMatch: /browser\/(dashboards|operate|workers)\.test\.mjs/,
      grepInvert: /provisioning|recorded benchmark/,
    },
  ],
});
