// Compares what the app imports of Grafana's packages, as of the version that it is built with, with other versions: what
// they removed, and what they changed in a way that levitate can describe. It exits with 1 if there is any beyond the
// accepted ones. It runs in the project's folder.
//
//   node tools/grafana13/compare.mjs 12.4.10 13.0.2

import ts from '@tsd/typescript';
import { getIncompatibilitiesBetweenPackages, getSymbolDiff } from '@grafana/levitate';

const PACKAGES = ['@grafana/data', '@grafana/runtime', '@grafana/ui'];
const PANELS = ['benchmarks', 'comparison', 'controls', 'routers'];
const BUILT_WITH = '12.2.0';

/** Changes that do not concern the app, with the reason. */
const ACCEPTED = {
  'PanelOptionsEditorBuilder.addTextInput': 'the same parameter, declared elsewhere',
};

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

for (const version of process.argv.slice(2)) {
  for (const name of PACKAGES) {
    const from = `${name}@${BUILT_WITH}`;
    const to = `${name}@${version}`;
    const items = await getIncompatibilitiesBetweenPackages(program, from, to, {});
    const differences = new Map(items.map((item) => [item.name, difference(item)]).filter(([, text]) => text));
    let refused = 0;
    for (const [symbol, text] of differences) {
      const reason = ACCEPTED[symbol];
      console.log(`${to}: ${symbol}: ${reason ?? text}`);
      refused += reason === undefined ? 1 : 0;
    }
    console.log(`${to}: ${refused} of the app's imports removed or changed, ${differences.size - refused} accepted`);
    process.exitCode ||= refused > 0 ? 1 : 0;
  }
}
