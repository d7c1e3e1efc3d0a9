import { useId } from 'react';

import { Combobox, type ComboboxOption } from '@grafana/ui';

import { LINE, stylesOf } from '../../lib/styles';

interface ChoiceProps {
  label: string;
  /** The options, or how they are requested when the choice is opened. */
  options: ComboboxOption[] | ((typed: string) => Promise<ComboboxOption[]>);
  value: string | ComboboxOption;
  onChange(value: string): void;
  /** The width, in units of 8 pixels. By default, it is that of the selected option, and at least 28. */
  width?: number;
}

/** A choice from a list, beside its label. */
export function Choice({ label, options, value, onChange, width }: ChoiceProps) {
  const styles = useStyles();
  const id = useId();
  const size = width === undefined ? ({ width: 'auto', minWidth: 28 } as const) : { width };
  return (
    <div className={styles.choice}>
      <label htmlFor={id}>{label}</label>
      <Combobox id={id} {...size} options={options} value={value} onChange={(option) => onChange(option.value)} />
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  choice: {
    ...LINE,
    gap: theme.spacing(0.5, 1),
    minWidth: 0,
    // The longest option must not exceed a phone's width.
    '& > *': { maxWidth: '100%' },
    '& label': { color: theme.colors.text.secondary },
    '@media print': { display: 'none' },
  },
}));
