import { PanelPlugin, type PanelProps, type SelectableValue } from '@grafana/data';

import { listBaselines } from '../../client';
import { grafanaClient } from '../../client/grafana';
import { Comparison, type ComparisonOptions, type TextSize } from '../../components/Comparison';
import { LaneHeadline } from '../../components/Headline';
import { Panel } from '../Panel';
import { addLaneOption, laneOf, type LaneOptions } from '../lane';

/** The options of the panel. */
export interface ComparisonPanelOptions extends LaneOptions, ComparisonOptions {}

/** The result of the step in one sentence, and live against baseline, as a dashboard panel. */
export function ComparisonPanel({ options, replaceVariables, timeRange }: PanelProps<ComparisonPanelOptions>) {
  const { baseline, size, hideKV, hideRoundRobin } = options;
  const lane = laneOf(options, replaceVariables);
  return (
    <Panel label="Live against baseline">
      <LaneHeadline lane={lane} />
      <Comparison
        lane={lane}
        baseline={baseline}
        size={size}
        hideKV={hideKV}
        hideRoundRobin={hideRoundRobin}
        span={() => ({ from: timeRange.from.valueOf(), to: timeRange.to.valueOf() })}
      />
    </Panel>
  );
}

const byDefault: SelectableValue<string> = { value: '', label: 'The load generator’s default' };

/** The choices of baselines. Without an answer, only the default one is offered. */
async function baselineOptions(): Promise<Array<SelectableValue<string>>> {
  const all = await listBaselines(grafanaClient).catch(() => []);
  const own = { value: 'this target', label: 'This target, as measured' };
  const named = all.map(({ name, title }) => ({ value: name, label: title, description: name }));
  return [byDefault, own, ...named.filter(({ value }) => value !== own.value)];
}

const sizes: Array<SelectableValue<TextSize>> = [
  { value: 'normal', label: 'Normal' },
  { value: 'large', label: 'Large, for presentations' },
];

/** The panel "Live against baseline". */
export const plugin = new PanelPlugin<ComparisonPanelOptions>(ComparisonPanel).setPanelOptions((builder) => {
  addLaneOption(builder);
  builder
    .addSelect({
      path: 'baseline',
      name: 'Baseline',
      description: 'The baseline that live figures are compared with.',
      defaultValue: '',
      settings: { options: [byDefault], getOptions: baselineOptions },
    })
    .addBooleanSwitch({ path: 'hideRoundRobin', name: 'Hide round-robin', defaultValue: false })
    .addBooleanSwitch({ path: 'hideKV', name: 'Hide KV-aware', defaultValue: false })
    .addRadio({ path: 'size', name: 'Text size', defaultValue: 'normal', settings: { options: sizes } });
});
