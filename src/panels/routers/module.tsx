import { PanelPlugin, type SelectableValue } from '@grafana/data';

import { addLaneOption } from '../lane';
import { RoutersPanel, type RoutersOptions, type RoutersPart } from './RoutersPanel';

const parts: Array<SelectableValue<RoutersPart>> = [
  { value: 'shadow', label: 'Other routers on the same traffic' },
  { value: 'pairs', label: 'Two lanes, turn by turn' },
];

/** The panel "Routers". */
export const plugin = new PanelPlugin<RoutersOptions>(RoutersPanel).setPanelOptions((builder) => {
  addLaneOption(builder);
  builder.addSelect({ path: 'part', name: 'Part', defaultValue: 'shadow', settings: { options: parts } });
});
