import { readFileSync } from 'fs';
import path from 'path';
import { constants, gzipSync } from 'zlib';

import { rspack } from '@rspack/core';

/** Where the load generator takes the page from. Git ignores what is built there. */
const PAGE_DIR = 'sidecar/loadgen/server/page/files';

/** The text's font, for which @grafana/ui asks its server under these names. */
const FONT = path.resolve('node_modules/@fontsource/inter');
const FACES = {
  Regular: '400-normal',
  Medium: '500-normal',
  Italic: '400-italic',
  MediumItalic: '500-italic',
};
const FIRST_FACES = ['Regular', 'Medium'].map((name) => `public/fonts/inter/Inter-${name}.woff2`);

/** How much may come before the first paint, and in all with the pages that are fetched after it, in bytes as sent. */
const MAX_FIRST = 320 * 1024;
const MAX_ALL = 660 * 1024;

const gzip = (content) => gzipSync(content, { level: constants.Z_BEST_COMPRESSION });

/** Makes index.html, compresses each other file that becomes smaller, and weighs what a first visit needs. */
class Page {
  constructor(limited) {
    this.limited = limited;
  }

  apply(compiler) {
    compiler.hooks.thisCompilation.tap('Page', (compilation) => {
      const stage = rspack.Compilation.PROCESS_ASSETS_STAGE_OPTIMIZE_TRANSFER;
      compilation.hooks.processAssets.tap({ name: 'Page', stage }, () => {
        this.writeIndex(compilation);
        this.compress(compilation);
      });
    });
  }

  /** The scripts and fonts come in the head, so that the browser asks for them at once. */
  writeIndex(compilation) {
    const files = first(compilation);
    const tags = files.map((file) =>
      file.endsWith('.js')
        ? `<script defer src="/${file}"></script>`
        : `<link rel="preload" as="font" type="font/woff2" href="/${file}" crossorigin />`
    );
    const template = readFileSync(path.resolve('src/standalone/index.html'), 'utf8');
    const index = template.replace('<!-- head -->', tags.join('\n    '));
    compilation.emitAsset('index.html', new rspack.sources.RawSource(index));
  }

  compress(compilation) {
    const weights = new Map();
    const before = ['index.html', ...first(compilation)];
    for (const { name, source } of compilation.getAssets()) {
      const plain = source.buffer();
      const small = gzip(plain);
      if (plain.length > 1024 && small.length < 0.9 * plain.length) {
        compilation.emitAsset(`${name}.gz`, new rspack.sources.RawSource(small));
        if (name !== 'index.html') {
          compilation.deleteAsset(name); // the load generator decompresses it for the few that take no gzip
        }
      }
      weights.set(name, Math.min(small.length, plain.length));
    }
    const others = [...weights.keys()].filter((name) => /\.(js|css)$/.test(name));
    const check = (part, names, limit) => {
      const weight = [...new Set(names)].reduce((sum, name) => sum + (weights.get(name) ?? 0), 0);
      process.stdout.write(`page: ${(weight / 1024).toFixed(1)} kB gzipped ${part}\n`);
      if (this.limited && weight > limit) {
        compilation.errors.push(new Error(`the page is ${weight} bytes gzipped ${part}, more than ${limit}`));
      }
    };
    check('before the first paint', before, MAX_FIRST);
    check('with all pages', [...before, ...others], MAX_ALL);
  }
}

/** What a first visit needs: the entry's scripts, and the font of its text. */
function first(compilation) {
  return [...FIRST_FACES, ...(compilation.entrypoints.get('page')?.getFiles() ?? [])];
}

/** Returns the rule that compiles our scripts for browsers with a version of the language. */
export const scripts = (target) => ({
  test: /\.[tj]sx?$/,
  exclude: /node_modules/,
  loader: 'builtin:swc-loader',
  options: {
    jsc: {
      target,
      parser: { syntax: 'typescript', tsx: true },
      transform: { react: { runtime: 'automatic' } },
    },
  },
  type: 'javascript/auto',
});

/** Has Grafana's packages import single functions of packages that are otherwise bundled whole. */
const singleFunctions = {
  test: /node_modules\/@grafana\/.*\.mjs$/,
  loader: 'builtin:swc-loader',
  options: {
    jsc: { target: 'es2020' },
    transformImport: [
      { libraryName: 'lodash', customName: 'lodash/{{ member }}.js', transformToDefaultImport: true },
      { libraryName: 'semver', customName: 'semver/functions/{{ member }}.js' },
    ],
  },
};

/**
 * The page that the load generator serves: all in one, without Grafana around it. packages is a folder of packages that
 * come before those of node_modules, such as another version of Grafana's, and page is another folder to build into.
 */
export const pageConfig = (production, packages = 'node_modules', page = PAGE_DIR) => ({
  name: 'page',
  context: path.resolve('src'),
  entry: { page: './standalone/index.tsx' },
  mode: production ? 'production' : 'development',
  devtool: production ? false : 'eval-source-map',
  target: ['web', 'es2020'],
  module: {
    rules: [
      scripts('es2020'),
      singleFunctions,
      { test: /\.css$/, type: 'css' },
      { test: /\.(svg|png)$/, type: 'asset/resource' },
      { test: /\.md$/, type: 'asset/source' },
    ],
  },
  resolve: {
    extensions: ['.ts', '.tsx', '.mjs', '.js'],
    modules: [path.resolve(packages), 'node_modules'],
    // The charts of @grafana/ui ask for the browser's time zone alone: its rules of these years will do.
    alias: { 'moment-timezone$': 'moment-timezone/builds/moment-timezone-with-data-10-year-range.js' },
  },
  output: {
    path: path.resolve(page),
    publicPath: '/',
    filename: 'assets/[name].[contenthash:10].js',
    chunkFilename: 'assets/[name].[contenthash:10].js',
    cssChunkFilename: 'assets/[name].[contenthash:10].css',
    assetModuleFilename: 'assets/[name].[contenthash:10][ext]',
    clean: { keep: /\.gitignore$/ },
  },
  optimization: {
    minimizer: [
      new rspack.SwcJsMinimizerRspackPlugin({
        extractComments: false,
        minimizerOptions: {
          format: { comments: false },
          compress: { pure_funcs: ['console.log', 'console.info'] },
        },
      }),
    ],
  },
  performance: { hints: false },
  plugins: [
    new rspack.DefinePlugin({ 'process.env': '({})' }),
    new rspack.IgnorePlugin({ resourceRegExp: /^\.\/locale$/, contextRegExp: /moment$/ }), // 138 languages
    new rspack.CopyRspackPlugin({
      patterns: [
        // What @grafana/ui asks its server for: all of its icons, which are small.
        { from: path.resolve(packages, '@grafana/ui/dist/public/img/icons'), to: 'public/build/img/icons' },
        { from: 'standalone/icons', to: 'public/build/img/icons' }, // those that the package lacks
        { from: 'img/logo.svg', to: 'public/logo.svg' },
        { from: path.join(FONT, 'LICENSE'), to: 'public/fonts/inter/LICENSE.txt' },
        ...Object.entries(FACES).map(([name, face]) => ({
          from: path.join(FONT, `files/inter-latin-${face}.woff2`),
          to: `public/fonts/inter/Inter-${name}.woff2`,
        })),
      ],
    }),
    new Page(page === PAGE_DIR),
  ],
});
