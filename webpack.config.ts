import { readdirSync, readFileSync } from 'fs';
import path from 'path';
import { gzipSync } from 'zlib';

import CopyWebpackPlugin from 'copy-webpack-plugin';
import { type Compiler, type Configuration } from 'webpack';

import { DIST_DIR, SOURCE_DIR } from './.config/bundler/constants.ts';
import baseConfig, { type Env } from './.config/webpack/webpack.config.ts';
import { pageConfig } from './webpack.page.config.ts';

/** The folders of the nested panels. */
const panels = readdirSync(path.join(SOURCE_DIR, 'panels'), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `panels/${name}`);

/** How large a module.js may become, in bytes as it is sent. */
const MAX_GZIPPED = 150 * 1024;

/** Prints what each module.js weighs, and fails the build where one weighs too much. */
class Weights {
  apply(compiler: Compiler) {
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

/** The scaffolded build with the dashboards, which are outside of src, and the app's logo in every nested panel. */
const appConfig = async (env: Env): Promise<Configuration> => {
  const base = await baseConfig(env);
  const copy = new CopyWebpackPlugin({
    patterns: [
      { from: '*.json', context: path.resolve('dashboards'), to: path.resolve(DIST_DIR, 'dashboards') },
      ...panels.map((panel) => ({ from: 'img/logo.svg', to: `${panel}/img/logo.svg` })),
    ],
  });
  const weights = env.production ? [new Weights()] : [];
  const jsxRuntime = 'react/jsx-runtime';
  return {
    ...base,
    name: 'app',
    module: { ...base.module, rules: [...(base.module?.rules ?? []), { test: /\.md$/, type: 'asset/source' }] },
    plugins: [...(base.plugins ?? []), copy, ...weights],
    // What Grafana 12.2 has not is bundled, in a form that uses the React it has.
    externals: [base.externals ?? []].flat().filter((external) => external !== jsxRuntime),
    resolve: {
      ...base.resolve,
      alias: { ...base.resolve?.alias, [`${jsxRuntime}$`]: path.resolve(SOURCE_DIR, 'lib/jsxRuntime.ts') },
    },
  };
};

/** The app for Grafana, and the page for the load generator. */
const config = async (env: Env): Promise<Configuration[]> => [
  await appConfig(env),
  pageConfig(Boolean(env.production)),
];

export default config;
