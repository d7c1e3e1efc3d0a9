import React from 'react';

import { locationUtil, type PanelProps } from '@grafana/data';
import { locationService } from '@grafana/runtime';

import { PLUGIN_ID } from '../../client/grafana';
import { SweepResult, type SweepPart } from '../../components/SweepResult';
import { laneOf, type LaneOptions } from '../lane';
import { Panel } from '../Panel';

/** What a viewer chooses. */
export interface BenchmarksOptions extends LaneOptions {
  /** The id of a sweep, or a dashboard variable such as $sweep; empty: the newest. */
  sweep?: string;
  part?: SweepPart;
}

/** The accessible name of each part. */
const labels: Record<SweepPart, string> = {
  verdict: 'Benchmark verdict',
  curves: 'Benchmark curves',
  spans: 'Benchmark spans',
};

/** The variable of a dashboard that says which sweep is shown. */
const VARIABLE = 'var-sweep';

/** A part of what a sweep has measured, as a panel of a dashboard. */
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
