import { memo, useCallback } from 'react';

import type { ComboboxOption } from '@grafana/ui';

import { listBaselines, useClient } from '../../client';
import { Choice } from '../Choice';
import { THIS_TARGET } from './model';

interface BaselineChooserProps {
  /** The name of the baseline in use; empty for that of the panel or of the load generator. */
  chosen: string | undefined;
  /** The title of the baseline in use, where it is known. */
  title: string | undefined;
  onChoose(name: string | undefined): void;
}

const DEFAULT: ComboboxOption = { value: '', label: 'Default baseline' };
const OWN: ComboboxOption = { value: THIS_TARGET, label: 'This target, as measured' };

/**
 * Chooses the baseline beside the live figures. The choice belongs to the viewer and is not stored. The choices are
 * requested when it is opened.
 */
export const BaselineChooser = memo(function BaselineChooser({ chosen, title, onChoose }: BaselineChooserProps) {
  const client = useClient();
  const options = useCallback(
    async (typed: string) => {
      const all = await listBaselines(client);
      const named = all.filter(({ name }) => name !== THIS_TARGET).map((b) => ({ value: b.name, label: b.title }));
      const wanted = typed.trim().toLowerCase();
      return [DEFAULT, ...named, OWN].filter(({ value, label }) => `${label} ${value}`.toLowerCase().includes(wanted));
    },
    [client]
  );
  const value = chosen === undefined ? DEFAULT : { value: chosen, label: title ?? chosen };
  return (
    <Choice
      label="Compare with"
      options={options}
      value={value}
      onChange={(name) => onChoose(name === DEFAULT.value ? undefined : name)}
    />
  );
});
