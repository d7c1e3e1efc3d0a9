import { PanelPlugin, type PanelProps, type SelectableValue } from '@grafana/data';

import { OtherRouters } from '../../components/OtherRouters';
import { PairsOfLanes } from '../../components/Twin';
import { Panel } from '../Panel';
import { addLaneOption, laneOf, type LaneOptions } from '../lane';

/** The content of a panel: two lanes compared turn by turn, or other routers on a lane's traffic. */
type RoutersPart = 'pairs' | 'shadow';

/** The options of the panel. */
export interface RoutersOptions extends LaneOptions {
  part?: RoutersPart;
}

/** The accessible name of each part. */
const labels: Record<RoutersPart, string> = {
  pairs: 'Two routers, turn by turn',
  shadow: 'Other routers on the same traffic',
};

/** Routers other than the one in force, as a dashboard panel. */
export function RoutersPanel({ options, replaceVariables }: PanelProps<RoutersOptions>) {
  const { part = 'shadow' } = options;
  return (
    <Panel label={labels[part]}>
      {part === 'pairs' ? <PairsOfLanes /> : <OtherRouters lane={laneOf(options, replaceVariables)} />}
    </Panel>
  );
}

const parts: Array<SelectableValue<RoutersPart>> = [
  { value: 'shadow', label: 'Other routers on the same traffic' },
  { value: 'pairs', label: 'Two lanes, turn by turn' },
];

/** The panel "Routers". */
export const plugin = new PanelPlugin<RoutersOptions>(RoutersPanel).setPanelOptions((builder) => {
  addLaneOption(builder);
  builder.addSelect({ path: 'part', name: 'Part', defaultValue: 'shadow', settings: { options: parts } });
});
