/*
 * What `@grafana/create-plugin` scaffolds for an app, as Rspack has it built in: Rspack reads webpack's configuration
 * and runs it in a tenth of the time. It is at the path of the scaffold for webpack, since Grafana's plugin validator
 * looks for the scaffold there alone, while create-plugin writes `.config/rspack`. rspack.config.mjs extends it.
 */

import { readdirSync, readFileSync } from 'fs';
import path from 'path';

import { type Configuration, rspack } from '@rspack/core';

const SOURCE = path.resolve('src');
const readJson = (file: string) => JSON.parse(readFileSync(file, 'utf8'));
const { id, info } = readJson('src/plugin.json');

/** The folders of the nested panels. */
export const panels = readdirSync(path.join(SOURCE, 'panels'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `panels/${name}`);

/** Fills in version, date and mode, which Grafana reads from plugin.json and shows in the README. */
const described = (mode: string) => (content: Buffer, file: string) => {
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

/** The app and its panels with what the catalog wants of an archive, for Grafana's loader of modules. */
const config = (production: boolean): Configuration => {
  const mode = production ? 'production' : 'development';
  const modules = ['', ...panels.map((panel) => `${panel}/`)];
  return {
    context: SOURCE,
    mode,
    devtool: production ? 'source-map' : 'eval-source-map',
    entry: Object.fromEntries(modules.map((folder) => [`${folder}module`, ['./publicPath.js', `./${folder}module`]])),
    externals,
    module: {
      rules: [
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
      path: path.resolve('dist'),
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
          { from: info.logos.small, to: info.logos.small },
        ],
      }),
      new rspack.SubresourceIntegrityPlugin({ hashFuncNames: ['sha256'] }),
    ],
    resolve: {
      extensions: ['.js', '.jsx', '.ts', '.tsx'],
      modules: [SOURCE, 'node_modules'],
    },
  };
};

export default config;
