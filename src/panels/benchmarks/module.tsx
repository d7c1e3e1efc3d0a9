import { locationUtil, PanelPlugin, type PanelProps, type SelectableValue } from '@grafana/data';
import { locationService } from '@grafana/runtime';

import { PLUGIN_ID } from '../../client/grafana';
import { SweepResult, type SweepPart } from '../../components/SweepResult';
import { Panel } from '../Panel';
import { addLaneOption, laneOf, type LaneOptions } from '../lane';

/** The options of the panel. */
export interface BenchmarksOptions extends LaneOptions {
  /** The id of a sweep, or a dashboard variable such as $sweep. Empty selects the newest. */
  sweep?: string;
  part?: SweepPart;
}

/** The accessible name of each part. */
const labels: Record<SweepPart, string> = {
  verdict: 'Benchmark verdict',
  curves: 'Benchmark curves',
  spans: 'Benchmark spans',
};

/** The dashboard variable that selects the sweep. */
const VARIABLE = 'var-sweep';

/** A part of a sweep's result, as a dashboard panel. */
export function BenchmarksPanel({ options, replaceVariables }: PanelProps<BenchmarksOptions>) {
  const { part = 'verdict', sweep = '' } = options;
  const id = replaceVariables(sweep).trim();
  return (
    <Panel label={labels[part]}>
      <SweepResult
        lane={laneOf(options, replaceVariables)}
        id={id.startsWith('$') ? '' : id}
        part={part}
        pageHref={locationUtil.assureBaseUrl(`/a/${PLUGIN_ID}/benchmarks`)}
        onChoose={(chosen) => locationService.partial({ [VARIABLE]: chosen })}
      />
    </Panel>
  );
}

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
