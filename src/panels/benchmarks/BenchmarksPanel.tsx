import { locationUtil, type PanelProps } from '@grafana/data';
import { locationService } from '@grafana/runtime';

import { PLUGIN_ID } from '../../client/grafana';
import { SweepResult, type SweepPart } from '../../components/SweepResult';
import { laneOf, type LaneOptions } from '../lane';
import { Panel } from '../Panel';

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
