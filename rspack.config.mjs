import { readdirSync, readFileSync } from 'fs';
import path from 'path';
import { gzipSync } from 'zlib';

import { rspack } from '@rspack/core';

import { pageConfig, scripts } from './rspack.page.config.mjs';

const SOURCE = path.resolve('src');
const DIST = path.resolve('dist');
const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'));
const { id, info } = readJson('src/plugin.json');

/** The folders of the nested panels. */
const panels = readdirSync(path.join(SOURCE, 'panels'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `panels/${name}`);

/** How large a module.js may become, in bytes as it is sent. */
const MAX_GZIPPED = 150 * 1024;

/** Prints what each module.js weighs, and fails the build where one weighs too much. */
class Weights {
  apply(compiler) {
    compiler.hooks.afterEmit.tap('Weights', (compilation) => {
      const names = compilation.getAssets().map(({ name }) => name);
      for (const name of names.filter((n) => path.basename(n) === 'module.js')) {
        const size = gzipSync(readFileSync(path.join(compiler.outputPath, name))).length;
        process.stdout.write(`${name}: ${(size / 1024).toFixed(1)} kB gzipped\n`);
        if (size > MAX_GZIPPED) {
          compilation.errors.push(new Error(`${name} is ${size} bytes gzipped, more than ${MAX_GZIPPED}`));
        }
      }
    });
  }
}

/** Fills in version, date and mode, which Grafana reads from plugin.json and shows in the README. */
const described = (mode) => (content, file) => {
  const name = path.basename(file);
  if (name !== 'plugin.json' && name !== 'README.md') {
    return content;
  }
  const text = content
    .toString()
    .replaceAll('%VERSION%', readJson('package.json').version)
    .replaceAll('%TODAY%', new Date().toISOString().substring(0, 10))
    .replaceAll('%PLUGIN_ID%', id);
  return name === 'README.md' ? text : JSON.stringify({ ...JSON.parse(text), buildMode: mode }, null, 4);
};

/** What Grafana offers to plugins. 'amd-module' is the loader's description of the module itself. */
const externals = [
  { 'amd-module': 'module' },
  ...['lodash', 'jquery', 'moment', 'slate', 'emotion', '@emotion/react', '@emotion/css', 'prismjs'],
  ...['slate-plain-serializer', '@grafana/slate-react', 'react', 'react/jsx-dev-runtime', 'react-dom', 'react-redux'],
  ...['redux', 'rxjs', 'i18next', 'react-router', 'd3', 'angular'],
  /^@grafana\/ui/i,
  /^@grafana\/runtime/i,
  /^@grafana\/data/i,
];

/** The app for Grafana, with the dashboards, which are outside of src, and its logo in every nested panel. */
const appConfig = (production) => {
  const mode = production ? 'production' : 'development';
  const modules = ['', ...panels.map((panel) => `${panel}/`)];
  return {
    name: 'app',
    context: SOURCE,
    mode,
    devtool: production ? 'source-map' : 'eval-source-map',
    entry: Object.fromEntries(modules.map((folder) => [`${folder}module`, ['./publicPath.js', `./${folder}module`]])),
    externals,
    module: {
      rules: [
        scripts('es2015'),
        { test: /\.(png|svg)$/, type: 'asset/resource', generator: { filename: '[hash][ext]' } },
        { test: /\.md$/, type: 'asset/source' },
      ],
    },
    optimization: {
      minimizer: [
        new rspack.SwcJsMinimizerRspackPlugin({
          extractComments: true,
          minimizerOptions: {
            format: { comments: false },
            compress: { pure_funcs: ['console.log', 'console.info'] },
          },
        }),
      ],
    },
    output: {
      clean: { keep: /(.*?_(amd64|arm(64)?)(.exe)?|go_plugin_build_manifest)/ },
      filename: '[name].js',
      chunkFilename: production ? '[name].js?_cache=[contenthash]' : '[name].js',
      library: { type: 'amd' },
      path: DIST,
      publicPath: `public/plugins/${id}/`,
      uniqueName: id,
      crossOriginLoading: 'anonymous',
    },
    performance: { hints: false },
    plugins: [
      new rspack.CopyRspackPlugin({
        patterns: [
          { from: 'README.md', to: '.', transform: described(mode) },
          { from: '../LICENSE', to: '.' },
          { from: '../CHANGELOG.md', to: '.' },
          { from: '**/*.json', to: '.', transform: described(mode) },
          { from: 'img/logo.svg', to: 'img/logo.svg' },
          ...panels.map((panel) => ({ from: 'img/logo.svg', to: `${panel}/img/logo.svg` })),
          ...info.screenshots.map(({ path: to }) => ({ from: path.resolve('docs/pictures', path.basename(to)), to })),
          { from: '*.json', context: path.resolve('dashboards'), to: path.join(DIST, 'dashboards') },
        ],
      }),
      new rspack.SubresourceIntegrityPlugin({ hashFuncNames: ['sha256'] }),
      ...(production ? [new Weights()] : []),
    ],
    resolve: {
      extensions: ['.js', '.jsx', '.ts', '.tsx'],
      modules: [SOURCE, 'node_modules'],
      // What Grafana 12.2 has not is bundled, in a form that uses the React it has.
      alias: { 'react/jsx-runtime$': path.join(SOURCE, 'lib/jsxRuntime.ts') },
    },
  };
};

/** The app for Grafana, and the page for the load generator. */
export default (env) => [appConfig(Boolean(env.production)), pageConfig(Boolean(env.production))];
