import { useId, useState } from 'react';
import { cx } from '@emotion/css';

import { Alert, Button, Checkbox, Combobox, Field as Framed, Input } from '@grafana/ui';

import {
  readOutlook,
  startSweep,
  useClient,
  usePolled,
  type Me,
  type SweepKind,
  type SweepList,
  type SweepSummary,
} from '../../client';
import { ActionFailure } from '../../components/Controls/ActionFailure';
import { useAction } from '../../components/Controls/useAction';
import { Fold } from '../../components/Fold';
import { RadioCards } from '../../components/RadioCards';
import { COLUMN, FIELDSET, LINE, stylesOf } from '../../lib/styles';
import { kindName, kindWord, sweepInProgress } from '../../lib/sweeps';
import { LANE } from '../lane';
import { readOnlyReason } from '../Shell/StartStop';
import { useChoice } from '../useChoice';
import {
  defaultsOf,
  durationText,
  errorsOf,
  fieldOfProblem,
  fieldsOf,
  isOffered,
  optionsOf,
  split,
  toRequest,
  unitOf,
  type Errors,
  type Field,
  type FieldName,
  type Values,
} from './form';
import { modeKey } from '../../lib/names';

const kinds: Array<{ kind: SweepKind; question: string }> = [
  {
    kind: 'trial',
    question:
      'Is arm B better than arm A, or which of several arms is the best, at one concurrency? They alternate until ' +
      'the result is decided.',
  },
  {
    kind: 'sweep',
    question: 'How does each mode perform at each level? The recorded tables were measured this way.',
  },
  {
    kind: 'capacity',
    question: 'How many conversations does each mode sustain within the SLOs, and at which level do the modes cross?',
  },
];

interface StartFormProps {
  list: SweepList;
  me: Me | undefined;
  /** The sweep that has the lane, or is to run. */
  running: SweepSummary | undefined;
  /** Whether nothing can be changed now. */
  isLost: boolean;
  /** The time of the newest snapshot. */
  seenAt: number | undefined;
  onStarted(id: string): void;
}

/** The kinds with the question that each answers, and a form for the chosen one. The values of each kind are kept. */
export function StartForm(props: StartFormProps) {
  const styles = useStyles();
  const [chosen, choose] = useChoice('kind');
  const kind = kinds.find((one) => one.kind === chosen)?.kind ?? 'trial';
  const [edits, setEdits] = useState<Partial<Record<SweepKind, Values>>>({});
  const defaults = props.list.defaults.find((request) => request.kind === kind);
  return (
    <div className={styles.start}>
      <RadioCards
        legend="What do you want to know?"
        cards={kinds.map((one) => {
          const usual = props.list.defaults.find((request) => request.kind === one.kind);
          const note = usual && `Defaults: ${lower(durationText(usual))}`;
          return { value: one.kind, title: kindName(one.kind), text: one.question, note };
        })}
        value={kind}
        onChange={(next) => choose(next === 'trial' ? undefined : next)}
      />
      {defaults ? (
        <Form
          key={kind}
          {...props}
          kind={kind}
          values={{ ...defaultsOf(defaults), ...edits[kind] }}
          onChange={(field, value) => setEdits({ ...edits, [kind]: { ...edits[kind], [field]: value } })}
          onReset={edits[kind] && (() => setEdits({ ...edits, [kind]: undefined }))}
        />
      ) : (
        <Alert severity="info" title={`A ${kindWord(kind)} cannot be started now`} bottomSpacing={0}>
          {unavailable(kind, props.list)}
        </Alert>
      )}
    </div>
  );
}

function lower(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}

function unavailable(kind: SweepKind, { modes }: SweepList): string {
  if (modes.length === 0) {
    return 'The cluster has not reported its routing modes yet. Is it running?';
  }
  return kind === 'trial' && modes.length === 1
    ? 'A trial compares two arms, but the mode driver offers only one.'
    : 'The load generator provides no defaults for it.';
}

interface FormProps extends StartFormProps {
  kind: SweepKind;
  values: Values;
  onChange(field: FieldName, value: string): void;
  /** Undefined where every value is the default. */
  onReset?(): void;
}

function Form(props: FormProps) {
  const { kind, list, values, me, running, isLost, seenAt, onChange, onReset, onStarted } = props;
  const styles = useStyles();
  const client = useClient();
  const action = useAction(seenAt);
  const errors = errorsOf(kind, values, list.limits);
  const isRight = Object.keys(errors).length === 0;
  const problem = action.failure?.problem;
  const at = fieldOfProblem(kind, problem);
  const request = toRequest(kind, values);
  const why = whyNot(me, running, isLost);
  const isAsked = kind === 'trial' && isRight && me?.canOperate === true && !isLost;
  const outlook = usePolled(
    isAsked ? () => readOutlook(client, LANE, request) : undefined,
    false,
    `outlook ${JSON.stringify(request)}`
  );
  const shown: Errors = at && problem ? { [at]: problem.message, ...errors } : errors;
  const start = () =>
    action.run('start', async () => {
      onStarted((await startSweep(client, LANE, request)).id);
    });
  const change = (field: FieldName, value: string) => {
    action.dismiss();
    onChange(field, value);
  };
  const entry = (field: Field) => (
    <Entry key={field.name} field={field} list={list} values={values} error={shown[field.name]} onChange={change} />
  );
  return (
    <form
      className={styles.form}
      aria-label={kindName(kind)}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        if (isRight && !why && !action.busy) {
          void start();
        }
      }}
    >
      <div className={styles.fields}>
        {fieldsOf(kind)
          .filter((field) => !field.more && isOffered(field, list, values))
          .map(entry)}
      </div>
      <Fold
        label="More settings"
        isForced={fieldsOf(kind).some((field) => field.more && shown[field.name])} // an error would be invisible
        beside={
          onReset && (
            <Button type="button" variant="secondary" fill="text" size="sm" icon="history" onClick={onReset}>
              Reset to the defaults
            </Button>
          )
        }
      >
        <div className={cx(styles.fields, styles.more)}>
          {fieldsOf(kind)
            .filter((field) => field.more)
            .map(entry)}
        </div>
      </Fold>
      {!at && <ActionFailure action={action} titles={{ start: `The ${kindWord(kind)} was not started` }} />}
      <div className={styles.actions}>
        <Button
          type="submit"
          variant="primary"
          icon={action.busy ? 'spinner' : 'play'}
          disabled={!isRight || why !== undefined || me === undefined || action.busy !== undefined}
        >
          Start the {kindWord(kind)}
        </Button>
        <span role="status">{why ?? (isRight ? durationText(request) : 'Correct the marked fields.')}</span>
      </div>
      {isAsked && (
        <p className={styles.note} role="note" aria-label="What it can find">
          {outlook.problem?.message ?? outlook.value?.words.join(' ')}
        </p>
      )}
      <p className={styles.note}>
        It controls the workload until it ends: other workload settings stay as they are, and afterwards mode and
        workload are restored.
      </p>
    </form>
  );
}

/** Returns why a sweep cannot be started now, or not by this user. */
function whyNot(me: Me | undefined, running: SweepSummary | undefined, isLost: boolean): string | undefined {
  if (me && !me.canOperate) {
    if (me.replay) {
      return readOnlyReason(me);
    }
    return me.role
      ? `The role ${me.role} can view benchmarks but not start them.`
      : 'Starting a benchmark requires the token.';
  }
  if (isLost) {
    return 'Nothing can be started while the load generator is unreachable.';
  }
  return running && `${sweepInProgress(running)}. Only one runs at a time.`;
}

interface EntryProps {
  field: Field;
  list: SweepList;
  values: Values;
  error?: string;
  onChange(field: FieldName, value: string): void;
}

function Entry({ field, list, values, error, onChange }: EntryProps) {
  const styles = useStyles();
  const id = useId();
  const { name, label, entry, help } = field;
  const value = values[name] ?? '';
  if (entry === 'modes') {
    return <Modes {...{ field, list, values, error, onChange }} />;
  }
  const options = optionsOf(entry, list);
  return (
    <Framed
      noMargin
      className={(entry === 'levels' && field.help) || name === 'title' ? styles.wide : styles.field}
      label={label}
      description={help}
      htmlFor={id}
      invalid={error !== undefined}
      error={error}
    >
      {options.length > 0 ? (
        <Combobox id={id} options={options} value={value} onChange={(option) => onChange(name, option.value)} />
      ) : (
        <Input
          id={id}
          inputMode={entry === 'number' ? 'decimal' : undefined}
          suffix={unitOf(field, values)}
          value={value}
          onChange={(event) => onChange(name, event.currentTarget.value)}
        />
      )}
    </Framed>
  );
}

/** The modes to measure, in the driver's order; of a trial those beside A and B. */
function Modes({ field: { name, label, kinds: of }, list, values, error, onChange }: EntryProps) {
  const styles = useStyles();
  const chosen = split(values[name] ?? '');
  const toggle = (key: string, on: boolean) =>
    onChange(
      name,
      list.modes
        .map(modeKey)
        .filter((one) => (one === key ? on : chosen.includes(one)))
        .join(', ')
    );
  return (
    <fieldset className={styles.modes}>
      <legend>{label}</legend>
      {optionsOf('modes', list)
        .filter(({ value }) => !of.includes('trial') || (value !== values.a && value !== values.b))
        .map(({ value, label: words }) => (
          <Checkbox
            key={value}
            label={words}
            value={chosen.includes(value)}
            onChange={(event) => toggle(value, event.currentTarget.checked)}
          />
        ))}
      {error && (
        <div role="alert" className={styles.error}>
          {error}
        </div>
      )}
    </fieldset>
  );
}

const useStyles = stylesOf((theme) => ({
  start: { ...COLUMN, gap: theme.spacing(2) },
  form: { ...COLUMN, gap: theme.spacing(1.5) },
  fields: {
    display: 'grid',
    // 300 px hold a mode with its speculation.
    gridTemplateColumns: 'repeat(auto-fill, minmax(min(300px, 100%), 1fr))',
    alignItems: 'end', // a field with a description is higher above its input
    gap: theme.spacing(2),
  },
  more: { marginTop: theme.spacing(1) },
  field: { minWidth: 0 },
  wide: { minWidth: 0, [theme.breakpoints.up('md')]: { gridColumn: 'auto / span 2' } },
  modes: {
    gridColumn: '1 / -1',
    display: 'grid',
    gridTemplateColumns: 'repeat(auto-fill, minmax(min(240px, 100%), 1fr))',
    justifyItems: 'start',
    gap: theme.spacing(0.5, 2),
    ...FIELDSET,
    '& legend': {
      ...theme.typography.bodySmall,
      fontWeight: theme.typography.fontWeightMedium,
      marginBottom: theme.spacing(0.5),
      border: 0,
      color: theme.colors.text.primary,
    },
  },
  error: { color: theme.colors.error.text, fontSize: theme.typography.bodySmall.fontSize },
  actions: { ...LINE, gap: theme.spacing(1, 2) },
  note: { ...theme.typography.bodySmall, margin: 0, color: theme.colors.text.secondary, textWrap: 'pretty' },
}));
