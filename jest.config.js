// force timezone to UTC to allow tests to work regardless of local timezone
// generally used by snapshots, but can affect specific tests
process.env.TZ = 'UTC';

const base = require('./.config/jest.config');

module.exports = {
  // Jest configuration provided by Grafana scaffolding
  ...base,
  // Machines that build other things at the same time are slow.
  testTimeout: 30_000,
  // The d3 family's modules end in .mjs, and are not what Node can require either.
  transform: { ...base.transform, '^.+\\.mjs$': Object.values(base.transform)[0] },
};
