import { Field, RadioButtonGroup, Stack } from '@grafana/ui';

import type { Mode, Speculation } from '../../client';
import { modeName, speculationName } from '../../lib/names';

/** The routing of an import's requests, where its file does not contain it. */
export interface Run {
  /** Undefined until it is chosen. */
  mode?: Mode;
  speculation: Speculation;
}

interface RunFieldsProps {
  run: Run;
  onChange(run: Run): void;
}

const modes: Mode[] = ['kv', 'round_robin', 'least_loaded', 'unknown'];
const speculations: Speculation[] = ['not_recorded', 'off', 'draft', 'eagle3'];

/** The fields that no other load generator records: the routing mode, and speculation. */
export function RunFields({ run, onChange }: RunFieldsProps) {
  return (
    <Stack direction="row" gap={2} wrap="wrap">
      <Field label="Routing mode" description="The mode in use when these results were measured.">
        <RadioButtonGroup
          aria-label="Routing mode"
          options={modes.map((value) => ({ value, label: modeName(value) }))}
          value={run.mode}
          onChange={(mode) => onChange({ ...run, mode })}
        />
      </Field>
      <Field label="Speculation" description="“Not recorded” if unknown.">
        <RadioButtonGroup
          aria-label="Speculation"
          options={speculations.map((value) => ({ value, label: speculationName(value) }))}
          value={run.speculation}
          onChange={(speculation) => onChange({ ...run, speculation })}
        />
      </Field>
    </Stack>
  );
}
