import { memo, useId, useState } from 'react';
import { cx } from '@emotion/css';

import { Checkbox, Combobox, Field as Framed, IconButton, Input } from '@grafana/ui';

import type { SimulationProfile, Speculation } from '../../client';
import { speculationName } from '../../lib/names';
import { COLUMN, FIELDSET, rangeInput, stylesOf } from '../../lib/styles';
import { fieldsOf, stopsWith, valueText, type Field, type FieldName, type Group, type NumberField } from './fields';
import type { Question } from './useQuestion';

interface FieldsProps {
  question: Question;
  /** The load generator's errors by field. */
  refused: Partial<Record<FieldName, string>>;
  onChange(name: FieldName, value: string | undefined): void;
}

const groups: Array<{ group: Group; title: string }> = [
  { group: 'cluster', title: 'Cluster' },
  { group: 'workload', title: 'Workload' },
  { group: 'router', title: 'KV router' },
  { group: 'computed', title: 'What is computed' },
];

/** All fields. A value that differs from the preset is marked with the preset's value, and can be reset. */
export const Fields = memo(function Fields({ question, refused, onChange }: FieldsProps) {
  const styles = useStyles();
  return (
    <div className={styles.fields}>
      {groups.map(({ group, title }) => (
        <fieldset key={group} className={styles.group}>
          <legend>{title}</legend>
          {fieldsOf(question.values, question.trace)
            .filter((field) => field.group === group)
            .map((field) => (
              <Row
                key={field.name}
                field={field}
                value={question.values[field.name]}
                before={question.before[field.name]}
                error={question.errors[field.name] ?? refused[field.name]}
                profile={question.profile}
                onChange={onChange}
              />
            ))}
        </fieldset>
      ))}
    </div>
  );
});

interface RowProps {
  field: Field;
  value: string;
  before: string;
  error?: string;
  profile: SimulationProfile;
  onChange(name: FieldName, value: string | undefined): void;
}

function Row(props: RowProps) {
  const { field, value, before, onChange } = props;
  const styles = useStyles();
  const id = useId();
  const changed = value !== before;
  return (
    <div className={cx(styles.row, changed && styles.changed)}>
      {field.kind !== 'switch' && (
        <label htmlFor={id} className={styles.label}>
          {field.label}
          {field.kind === 'number' && field.unit && <small>, {field.unit}</small>}
          {field.flag && <code>{field.flag}</code>}
        </label>
      )}
      <Entry {...props} id={id} />
      {changed && (
        <div className={styles.before}>
          <small>preset: {beforeText(field, before)}</small>
          <IconButton
            name="history"
            className={styles.back}
            size="sm"
            tooltip={`Reset ${field.label} to ${beforeText(field, before)}`}
            onClick={() => onChange(field.name, undefined)}
          />
        </div>
      )}
    </div>
  );
}

function beforeText(field: Field, before: string): string {
  return field.kind === 'choice' && !field.options ? speculationName(before as Speculation) : valueText(field, before);
}

function Entry({ id, field, value, error, profile, onChange }: RowProps & { id: string }) {
  const styles = useStyles();
  switch (field.kind) {
    case 'switch':
      return (
        <Checkbox
          className={styles.check}
          label={field.label}
          description={field.flag}
          value={value === 'true'}
          onChange={(event) => onChange(field.name, String(event.currentTarget.checked))}
        />
      );
    case 'choice':
      return (
        <Framed noMargin invalid={Boolean(error)} error={error}>
          <Combobox
            id={id}
            options={
              field.options ??
              profile.speculations.map(({ speculation, calibrated }) => ({
                value: speculation as string,
                label: speculationName(speculation),
                description: calibrated ? undefined : 'not calibrated',
              }))
            }
            value={value}
            onChange={(option) => onChange(field.name, option.value)}
          />
        </Framed>
      );
    case 'number':
      return <NumberEntry id={id} field={field} value={value} error={error} onChange={onChange} />;
  }
}

interface NumberEntryProps {
  id: string;
  field: NumberField;
  value: string;
  error?: string;
  onChange(name: FieldName, value: string): void;
}

/** A slider over the usual values, and a number for any other, which is applied when it is complete. */
function NumberEntry({ id, field, value, error, onChange }: NumberEntryProps) {
  const styles = useStyles();
  const [typed, setTyped] = useState<string>();
  const { stops, at } = stopsWith(field, Number(value));
  const last = stops.length - 1;
  const apply = () => {
    if (typed !== undefined) {
      onChange(field.name, typed.trim());
      setTyped(undefined);
    }
  };
  return (
    <div className={styles.number}>
      <input
        type="range"
        className={styles.slider}
        style={{ ['--share' as string]: `${(100 * at) / last}%` }}
        aria-label={`${field.label} by slider`}
        aria-valuetext={valueText(field, value)}
        min={0}
        max={last}
        step={1}
        value={at}
        onChange={(event) => onChange(field.name, String(stops[event.currentTarget.valueAsNumber]))}
      />
      <Framed noMargin invalid={Boolean(error)} error={error}>
        <Input
          id={id}
          inputMode="decimal"
          width={10}
          value={typed ?? value}
          onChange={(event) => setTyped(event.currentTarget.value)}
          onBlur={apply}
          onKeyDown={(event) => event.key === 'Enter' && apply()}
        />
      </Framed>
      {field.words?.[Number(value)] && <small className={styles.words}>{field.words[Number(value)]}</small>}
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  fields: { ...COLUMN, gap: theme.spacing(1.5) },
  group: {
    ...FIELDSET,
    '& legend': {
      width: '100%',
      margin: 0,
      paddingBottom: theme.spacing(0.25),
      border: 0,
      borderBottom: `1px solid ${theme.colors.border.weak}`,
      fontSize: 'inherit',
      fontWeight: theme.typography.fontWeightMedium,
      color: theme.colors.text.primary,
    },
  },
  row: {
    display: 'grid',
    gap: theme.spacing(0, 1),
    padding: theme.spacing(0.75, 0, 0.75, 1),
    borderLeft: '3px solid transparent',
  },
  changed: { borderLeftColor: theme.colors.primary.main, background: theme.colors.action.hover },
  label: {
    lineHeight: 1.25,
    '& small': { color: theme.colors.text.secondary },
    '& code': { display: 'block', width: 'fit-content', margin: 0, overflowWrap: 'anywhere' },
  },
  before: {
    display: 'flex',
    alignItems: 'center',
    justifyContent: 'flex-end',
    gap: theme.spacing(0.5),
    color: theme.colors.text.secondary,
  },
  back: { minWidth: 24, minHeight: 24, justifyContent: 'center', margin: 0 },
  number: {
    display: 'grid',
    gridTemplateColumns: 'minmax(120px, 1fr) auto',
    alignItems: 'center',
    gap: theme.spacing(0, 1.5),
  },
  slider: rangeInput(theme),
  // As wide as its text, at the left, in the font of the other labels.
  check: {
    justifySelf: 'start',
    '& > span': { fontSize: 'inherit', lineHeight: 1.25, fontWeight: 'inherit' },
  },
  words: { gridColumn: '1 / -1', justifySelf: 'end', color: theme.colors.text.secondary },
}));
