import type { PanelProps } from '@grafana/data';

import { Controls } from '../../components/Controls';
import { laneOf, type LaneOptions } from '../lane';
import { Panel } from '../Panel';

/** The options of the panel. */
export type ControlsOptions = LaneOptions;

/** The workload controls, as a dashboard panel. */
export function ControlsPanel({ options, replaceVariables }: PanelProps<ControlsOptions>) {
  return (
    <Panel label="Workload controls">
      <Controls lane={laneOf(options, replaceVariables)} />
    </Panel>
  );
}
