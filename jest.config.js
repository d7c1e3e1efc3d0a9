// force timezone to UTC to allow tests to work regardless of local timezone
// generally used by snapshots, but can affect specific tests
process.env.TZ = 'UTC';

const { readFileSync } = require('fs');
const path = require('path');

const base = require('./.config/jest.config');
const { grafanaESModules, nodeModulesToTransform } = require('./.config/jest/utils');

const [[scripts, [swc, { jsc, ...rest }]]] = Object.entries(base.transform);
const options = { ...rest, jsc: { ...jsc, transform: { react: { runtime: 'automatic' } } } };

// The CommonJS builds of these packages are one file each and load two thousand modules. Of the ES modules, a test
// loads what it uses: the imports of their index are lazy, and those for side effects alone, of which there are none,
// and for components that nothing here uses are replaced.
const lazyPackages = ['@grafana/ui', '@grafana/data', '@grafana/runtime'];
const unused = '^\\./(components/(Table/Table|.*/index|Forms/Legacy/.*|(Secret)?FormField/.*)|geo/layer)\\.mjs$';
const indexOf = (name) => path.join(__dirname, 'node_modules', name, 'dist/esm/index.mjs');
const importsOf = (file) => Array.from(readFileSync(file, 'utf8').matchAll(/ from '(\.[^']+)'/g), ([, from]) => from);
const lazy = ['react-use', '@grafana/faro-web-sdk', ...lazyPackages.flatMap((name) => importsOf(indexOf(name)))];

module.exports = {
  // Jest configuration provided by Grafana scaffolding
  ...base,
  testTimeout: 90_000,
  moduleNameMapper: {
    ...base.moduleNameMapper,
    ...Object.fromEntries(lazyPackages.map((name) => [`^${name}$`, indexOf(name)])),
    [unused]: 'identity-obj-proxy',
    '^rxjs(/operators)?$': path.join(__dirname, 'node_modules/rxjs/dist/bundles/rxjs.umd.js'), // one file, not 226
  },
  transform: {
    [scripts]: [swc, options],
    '^.+\\.mjs$': [swc, { ...options, module: { lazy } }],
    '^.+\\.md$': path.join(__dirname, 'jest-markdown.js'),
  },
  transformIgnorePatterns: [nodeModulesToTransform([...grafanaESModules, ...lazyPackages])],
};
