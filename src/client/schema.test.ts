/** @jest-environment node */
import { execFileSync } from 'child_process';
import { readFileSync } from 'fs';
import path from 'path';

describe('schema.ts', () => {
  it('is what the OpenAPI document says; if not, run npm run generate', () => {
    const root = path.resolve(__dirname, '../..');
    const tool = path.join(root, 'node_modules/openapi-typescript/bin/cli.js');
    const document = path.join(root, 'sidecar/api/openapi.yaml');
    const generated = execFileSync(process.execPath, [tool, document], { cwd: root, encoding: 'utf8' });
    expect(generated).toBe(readFileSync(path.join(__dirname, 'schema.ts'), 'utf8'));
  }, 30_000);
});
