import type { InterpolateFunction, PanelOptionsEditorBuilder } from '@grafana/data';

/** The lane in use where none is named. */
const DEFAULT_LANE = 'main';

/** The option of every panel that selects its lane. */
export interface LaneOptions {
  /** A lane's name, or a dashboard variable such as $lane. */
  lane?: string;
}

/** Adds the option to a panel's editor. */
export function addLaneOption<T extends LaneOptions>(builder: PanelOptionsEditorBuilder<T>) {
  builder.addTextInput({
    path: 'lane',
    name: 'Lane',
    description: 'The workload to show: its name, or a variable such as $lane.',
    defaultValue: DEFAULT_LANE,
  });
}

/** Returns the selected lane. A variable that the dashboard lacks selects the default one. */
export function laneOf({ lane }: LaneOptions, interpolate: InterpolateFunction): string {
  const name = interpolate(lane ?? DEFAULT_LANE).trim();
  return name === '' || name.startsWith('$') ? DEFAULT_LANE : name;
}
