import type { PanelProps } from '@grafana/data';

import { Comparison, type ComparisonOptions } from '../../components/Comparison';
import { laneOf, type LaneOptions } from '../lane';
import { Panel } from '../Panel';

/** The options of the panel. */
export interface ComparisonPanelOptions extends LaneOptions, ComparisonOptions {}

/** Live against baseline, as a dashboard panel. */
export function ComparisonPanel({ options, replaceVariables, timeRange }: PanelProps<ComparisonPanelOptions>) {
  const { baseline, size, hideKV, hideRoundRobin } = options;
  return (
    <Panel label="Live against baseline">
      <Comparison
        lane={laneOf(options, replaceVariables)}
        baseline={baseline}
        size={size}
        hideKV={hideKV}
        hideRoundRobin={hideRoundRobin}
        span={() => ({ from: timeRange.from.valueOf(), to: timeRange.to.valueOf() })}
      />
    </Panel>
  );
}
