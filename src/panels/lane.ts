import type { InterpolateFunction, PanelOptionsEditorBuilder } from '@grafana/data';

/** The lane that is meant where none is named. */
const DEFAULT_LANE = 'main';

/** Every panel's option of which lane it shows. */
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

/** The lane that the options mean; a variable that the dashboard does not have means the default one. */
export function laneOf({ lane }: LaneOptions, interpolate: InterpolateFunction): string {
  const name = interpolate(lane ?? DEFAULT_LANE).trim();
  return name === '' || name.startsWith('$') ? DEFAULT_LANE : name;
}
