import { PanelPlugin } from '@grafana/data';

import { addLaneOption } from '../lane';
import { ControlsPanel, type ControlsOptions } from './ControlsPanel';

/** The panel "Workload controls". */
export const plugin = new PanelPlugin<ControlsOptions>(ControlsPanel).setPanelOptions((builder) => {
  addLaneOption(builder);
});
