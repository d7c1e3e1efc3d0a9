import { PanelPlugin, type PanelProps } from '@grafana/data';

import { Controls } from '../../components/Controls';
import { Panel } from '../Panel';
import { addLaneOption, laneOf, type LaneOptions } from '../lane';

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

/** The panel "Workload controls". */
export const plugin = new PanelPlugin<ControlsOptions>(ControlsPanel).setPanelOptions((builder) => {
  addLaneOption(builder);
});
