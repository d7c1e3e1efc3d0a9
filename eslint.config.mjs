import { defineConfig } from 'eslint/config';
import baseConfig from './.config/eslint.config.mjs';

export default defineConfig([
  {
    ignores: [
      '**/node_modules/',
      '**/dist/',
      '**/coverage/',
      'test-results/',
      'bin/',
      'sidecar/loadgen/server/page/files/', // built
      'sidecar/loadgen/page/', // built by earlier versions
      'src/client/schema.ts', // generated
    ],
  },
  ...baseConfig,
  { rules: { 'react/react-in-jsx-scope': 'off' } },
]);
