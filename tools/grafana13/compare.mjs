// Compares what the app imports of Grafana's packages, as of the version that it is built with, with other versions:
// what they removed, and what they changed in a way that levitate can describe. It exits with 1 if there is any. It
// runs in the project's folder.
//
//   node tools/grafana13/compare.mjs 12.4.10 13.0.2

import ts from '@tsd/typescript';
import { getIncompatibilitiesBetweenPackages, getSymbolDiff } from '@grafana/levitate';

const PACKAGES = ['@grafana/data', '@grafana/runtime', '@grafana/ui'];
const PANELS = ['benchmarks', 'comparison', 'controls', 'routers'];
const BUILT_WITH = '12.2.0';

const program = ts.createProgram(['src/module.tsx', ...PANELS.map((name) => `src/panels/${name}/module.tsx`)], {
  jsx: ts.JsxEmit.React,
  module: ts.ModuleKind.CommonJS,
});
program.getTypeChecker(); // sets the parents of the nodes

const difference = ({ change }) =>
  change
    ? getSymbolDiff({
        prev: { key: change.prev.getName(), symbol: change.prev, program: change.prevProgram },
        current: { key: change.current.getName(), symbol: change.current, program: change.currentProgram },
      })
    : 'removed';

/** The lines of a difference with a sign, without what the declaration of a type begins with. */
const lines = (text, sign) =>
  text
    .replaceAll(/\u001b\[[0-9;]*m/g, '')
    .split('\n')
    .filter((line) => line.startsWith(sign) && line[1] !== ' ')
    .map((line) => line.slice(1).replace(/^type /, ''))
    .join('\n');

/** Whether levitate describes a change, beyond whether a type is imported as one. */
const isChange = ([, text]) => text === 'removed' || lines(text, '-') !== lines(text, '+');

for (const version of process.argv.slice(2)) {
  for (const name of PACKAGES) {
    const from = `${name}@${BUILT_WITH}`;
    const to = `${name}@${version}`;
    const items = await getIncompatibilitiesBetweenPackages(program, from, to, {});
    const changes = new Map(items.map((item) => [item.name, difference(item)]).filter(isChange));
    for (const [symbol, text] of changes) {
      console.log(`${to}: ${symbol}: ${text}`);
    }
    console.log(`${to}: ${changes.size} of the app's imports removed or changed`);
    process.exitCode ||= changes.size > 0 ? 1 : 0;
  }
}
