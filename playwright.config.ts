import { defineConfig } from '@playwright/test';

const { CHROMIUM_PATH, JOURNEYS_OUTPUT, BENCH } = process.env;

/** The journeys through a booth. The tests in sidecar/test/page and sidecar/test/grafana start it for each project. */
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
    // Snapshots of every step made the journeys a fifth to two fifths longer. A benchmark does not measure them.
    trace: BENCH ? 'off' : { mode: 'retain-on-failure', screenshots: false, snapshots: false },
  },
  projects: [
    // The gate: every page is visited once, and every control is used once.
    { name: 'page-gate', testDir: 'tests/browser/page', grep: /@gate/ },
    { name: 'grafana-gate', testIgnore: '**/page/**', grep: /@gate/ },
    // What verify adds, at the load generator's own address and at the root of a Grafana.
    { name: 'page', testDir: 'tests/browser/page', grepInvert: /@gate|@inside/ },
    { name: 'grafana', testIgnore: ['**/page/**', '**/kubernetes.test.mjs'], grepInvert: /@gate/ },
    // In a Grafana under a path: the journeys that take another way there.
    { name: 'under-a-path', grep: /@path|@inside/ },
    { name: 'kubernetes', testMatch: /browser\/kubernetes\.test\.mjs/ },
    // The pictures of README and docs, which are no test.
    { name: 'pictures', testMatch: 'pictures.mjs' },
    // What holds against any target.
    { name: 'anywhere', grep: /@anywhere/ },
  ],
});
