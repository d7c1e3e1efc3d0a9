import { memo, useCallback, useId } from 'react';

import { Combobox, type ComboboxOption } from '@grafana/ui';

import { listBaselines, useClient } from '../../client';
import { stylesOf } from '../../lib/styles';
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
  const styles = useStyles();
  const client = useClient();
  const id = useId();
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
    <div className={styles.chooser}>
      <label htmlFor={id}>Compare with</label>
      <Combobox
        id={id}
        width="auto"
        minWidth={28}
        options={options}
        value={value}
        onChange={(option) => onChoose(option.value === DEFAULT.value ? undefined : option.value)}
      />
    </div>
  );
});

const useStyles = stylesOf((theme) => ({
  chooser: {
    display: 'flex',
    flexWrap: 'wrap',
    alignItems: 'center',
    gap: theme.spacing(0.5, 1),
    minWidth: 0,
    // The longest title must not exceed a phone's width.
    '& > *': { maxWidth: '100%' },
    '& label': { color: theme.colors.text.secondary },
    '@media print': { display: 'none' },
  },
}));
