import { PanelPlugin, type SelectableValue } from '@grafana/data';

import type { SweepPart } from '../../components/SweepResult';
import { addLaneOption } from '../lane';
import { BenchmarksPanel, type BenchmarksOptions } from './BenchmarksPanel';

const parts: Array<SelectableValue<SweepPart>> = [
  { value: 'verdict', label: 'Verdict and progress' },
  { value: 'curves', label: 'Curves and table' },
  { value: 'spans', label: 'Spans' },
];

/** The panel "Benchmark result". */
export const plugin = new PanelPlugin<BenchmarksOptions>(BenchmarksPanel).setPanelOptions((builder) => {
  addLaneOption(builder);
  builder
    .addTextInput({
      path: 'sweep',
      name: 'Sweep',
      description: 'The id of a trial, a sweep or a capacity search, or a variable such as $sweep. Empty: the newest.',
      defaultValue: '',
    })
    .addSelect({ path: 'part', name: 'Part', defaultValue: 'verdict', settings: { options: parts } });
});
