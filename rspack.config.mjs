import { readFileSync } from 'fs';
import path from 'path';
import { gzipSync } from 'zlib';

import { rspack } from '@rspack/core';

import scaffold, { panels } from './.config/webpack/webpack.config.ts';
import { pageConfig, scripts } from './rspack.page.config.mjs';

const { info } = JSON.parse(readFileSync('src/plugin.json', 'utf8'));

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

/** The scaffolded build with the dashboards, which are outside of src, and the app's logo in every nested panel. */
const appConfig = (production) => {
  const base = scaffold(production);
  const copy = new rspack.CopyRspackPlugin({
    patterns: [
      ...panels.map((panel) => ({ from: 'img/logo.svg', to: `${panel}/img/logo.svg` })),
      ...info.screenshots.map(({ path: to }) => ({ from: path.resolve('docs/pictures', path.basename(to)), to })),
      { from: '*.json', context: path.resolve('dashboards'), to: path.resolve('dist/dashboards') },
    ],
  });
  return {
    ...base,
    name: 'app',
    module: { rules: [scripts('es2015'), ...base.module.rules] },
    plugins: [...base.plugins, copy, ...(production ? [new Weights()] : [])],
    // What Grafana 12.2 has not is bundled, in a form that uses the React it has.
    resolve: { ...base.resolve, alias: { 'react/jsx-runtime$': path.resolve('src/lib/jsxRuntime.ts') } },
  };
};

/** The app for Grafana, and the page for the load generator. */
export default ({ production, packages, page }) => [
  appConfig(Boolean(production)),
  pageConfig(Boolean(production), packages, page),
];
