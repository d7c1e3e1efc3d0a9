import React from 'react';

import type { PanelProps } from '@grafana/data';

import { Controls } from '../../components/Controls';
import { laneOf, type LaneOptions } from '../lane';
import { Panel } from '../Panel';

/** What a viewer chooses. */
export type ControlsOptions = LaneOptions;

/** Workload controls as a panel of a dashboard. */
export function ControlsPanel({ options, replaceVariables }: PanelProps<ControlsOptions>) {
  return (
    <Panel label="Workload controls">
      <Controls lane={laneOf(options, replaceVariables)} />
    </Panel>
  );
}
