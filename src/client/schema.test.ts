/** @jest-environment node */
import { execFileSync } from 'child_process';
import { readFileSync } from 'fs';
import path from 'path';

describe('schema.ts', () => {
  it('matches the OpenAPI document; if not, run npm run generate', () => {
    const root = path.resolve(__dirname, '../..');
    const tool = path.join(root, 'node_modules/openapi-typescript/bin/cli.js');
    const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
    const [, document, options] = / (\S+) -o \S+ (.*?) &&/.exec(scripts.generate) ?? [];
    const generated = execFileSync(process.execPath, [tool, document, ...options.split(' ')], {
      cwd: root,
      encoding: 'utf8',
    });
    expect(generated).toBe(readFileSync(path.join(__dirname, 'schema.ts'), 'utf8'));
  }, 30_000);
});
