import { useId, useRef, useState, type ChangeEvent } from 'react';

import { Alert, Button, Checkbox, Field, RadioButtonGroup, Stack, TextArea } from '@grafana/ui';

import {
  asProblem,
  importBaseline,
  useClient,
  useRenewBaselines,
  type Baseline,
  type BaselineFile,
  type Mode,
  type Problem,
  type Settings,
  type Speculation,
} from '../../client';
import { modeName, speculationName } from '../../lib/names';
import { COLUMN, stylesOf, visuallyHidden } from '../../lib/styles';
import { useLatest } from '../../lib/useStable';
import { TextField } from '../TextField';
import { Preview } from './Preview';
import { formatOf, hasOwnName, lineOf, MAX_FILE, nameOf, placeOf } from './file';

interface ImportFormProps {
  /** The existing baselines, to name the one that would be replaced. */
  baselines: Baseline[];
  settings: Settings | undefined;
}

/** The result of the last attempt. */
interface Outcome {
  /** The file of the attempt. Typing afterwards makes the result void. */
  of: BaselineFile;
  read?: Baseline;
  problem?: Problem;
  stored?: boolean;
}

/** Imports recorded results: paste text or choose a file, check the preview, then import it. */
export function ImportForm({ baselines, settings }: ImportFormProps) {
  const styles = useStyles();
  const client = useClient();
  const renew = useRenewBaselines();
  const id = useId();
  const area = useRef<HTMLTextAreaElement>(null);
  const status = useRef<HTMLSpanElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const [text, setText] = useState('');
  const [name, setName] = useState('');
  const [title, setTitle] = useState('');
  const [run, setRun] = useState<Run>(); // requested once the load generator reports it as missing, for this text only
  const [isMerge, setMerge] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>();
  const [isBusy, setBusy] = useState(false);
  const [unread, setUnread] = useState<string>();
  const begin = useLatest();
  const earlier = baselines.find(
    (b) => b.kind === 'imported' && b.name === (name.trim() || (outcome?.of.text === text && outcome.read?.name))
  );
  const file: BaselineFile = {
    text,
    format: formatOf(text),
    name: name.trim(),
    title: title.trim(),
    ...(run?.mode && run),
    ...(earlier && isMerge && { merge: true }),
  };
  const current = outcome && isSame(outcome.of, file) ? outcome : undefined;
  const attempt = async (trial: boolean) => {
    setBusy(true);
    try {
      setOutcome({ of: file, read: await importBaseline(client, file, trial), stored: !trial });
      if (!trial) {
        renew();
      }
    } catch (error) {
      const problem = asProblem(error);
      setOutcome({ of: file, problem });
      if (isAboutMode(problem) && !file.mode) {
        setRun({ speculation: 'not_recorded' });
      }
    } finally {
      setBusy(false);
      status.current?.focus(); // the pressed button is disabled now, and would lose the focus
    }
  };
  const take = (content: string) => {
    setText(content);
    setRun(undefined);
  };
  const choose = async ({ currentTarget }: ChangeEvent<HTMLInputElement>) => {
    const chosen = currentTarget.files?.[0];
    if (!chosen) {
      return;
    }
    currentTarget.value = ''; // otherwise the same file could not be chosen again after a correction
    if (chosen.size > MAX_FILE) {
      setUnread(`“${chosen.name}” is larger than the limit of 1 MiB for a baseline.`);
      return;
    }
    const isLatest = begin();
    const read = await chosen.text();
    if (!isLatest()) {
      return;
    }
    setUnread(undefined);
    take(read);
    if (name === '' && !hasOwnName(read)) {
      setName(nameOf(chosen.name));
    }
  };
  const line = lineOf(current?.problem?.field);
  const goTo = (to: number) => {
    area.current?.focus();
    area.current?.setSelectionRange(...placeOf(text, to));
  };
  const canCheck = text.trim() !== '' && !isBusy && !current?.read;
  const replaced =
    current?.read && !current.stored && !file.merge && baselines.find((b) => b.name === current.read?.name);
  return (
    <form
      className={styles.form}
      aria-label="Import a baseline"
      onSubmit={(event) => {
        event.preventDefault();
        if (canCheck) {
          void attempt(true);
        }
      }}
    >
      <p className={styles.note}>
        A CSV table in the format of the recorded ones, JSON as returned by the API, or the JSON results of AIPerf,
        GuideLLM, inference-perf or vLLM bench. In CSV, latencies are in milliseconds and hit rates in percent; an empty
        field means not recorded.
      </p>
      <Field label="File" htmlFor={`${id}-file`} invalid={unread !== undefined} error={unread}>
        <div>
          <Button
            id={`${id}-file`}
            type="button"
            variant="secondary"
            icon="upload"
            onClick={() => picker.current?.click()}
          >
            Choose a file…
          </Button>
          <input
            ref={picker}
            type="file"
            aria-label="File to import"
            className={styles.hidden}
            tabIndex={-1}
            accept=".csv,.tsv,.json,text/csv,text/tab-separated-values,application/json"
            onChange={choose}
          />
        </div>
      </Field>
      <Field label="Content" description="Choose a file, or paste its content here." htmlFor={`${id}-text`}>
        <TextArea
          id={`${id}-text`}
          ref={area}
          rows={8}
          spellCheck={false}
          className={styles.text}
          placeholder={'concurrency,mode,ttft_p50_ms,ttft_p95_ms\n60,round_robin,274.1,655.4\n60,kv,248.7,445.8'}
          value={text}
          onChange={(event) => take(event.currentTarget.value)}
        />
      </Field>
      <Stack direction="row" gap={2} wrap="wrap">
        <TextField
          label="Name"
          description={file.format === 'csv' ? 'Unique identifier.' : 'Empty: the one in the file, if any.'}
          width={34}
          maxLength={100}
          value={name}
          onChange={setName}
        />
        <TextField
          label="Title"
          description="Display name. Empty: the one in the file."
          width={44}
          maxLength={200}
          value={title}
          onChange={setTitle}
        />
      </Stack>
      {earlier && (
        <Checkbox
          label={`Add its rows to “${earlier.title}”`}
          description="Rows with the same concurrency, mode and speculation replace earlier ones."
          value={isMerge}
          onChange={(event) => setMerge(event.currentTarget.checked)}
        />
      )}
      {run && <RunFields run={run} onChange={setRun} />}
      {current?.problem && isAboutMode(current.problem) && !file.mode && (
        <Alert severity="info" title="How were the requests routed?" bottomSpacing={0}>
          The tool that wrote this file does not record it. Choose the routing mode, then check again.
        </Alert>
      )}
      {current?.problem && !(isAboutMode(current.problem) && !file.mode) && (
        <Alert
          severity="error"
          title={line === undefined ? 'Import rejected' : `Error in line ${line}`}
          bottomSpacing={0}
        >
          <p>{current.problem.message}</p>
          {line !== undefined && (
            <>
              <Excerpt text={text} line={line} />
              <Button type="button" variant="secondary" size="sm" onClick={() => goTo(line)}>
                Go to line {line}
              </Button>
            </>
          )}
        </Alert>
      )}
      {current?.read && !current.stored && <Preview baseline={current.read} settings={settings} />}
      {replaced && (
        <Alert severity="warning" title={`This replaces the imported baseline “${replaced.title}”`} bottomSpacing={0} />
      )}
      <Stack direction="row" gap={1} alignItems="center" wrap="wrap">
        <Button type="submit" variant="secondary" disabled={!canCheck}>
          Check
        </Button>
        <Button type="button" disabled={isBusy || !current?.read || current.stored} onClick={() => attempt(false)}>
          Import
        </Button>
        <span role="status" ref={status} tabIndex={-1}>
          {word(isBusy, current)}
        </span>
      </Stack>
    </form>
  );
}

function word(isBusy: boolean, current: Outcome | undefined): string {
  if (isBusy) {
    return 'Reading…';
  }
  if (current?.stored) {
    return `Imported as “${current.read?.name}”.`;
  }
  return current?.read ? 'No errors. Nothing has been stored yet.' : '';
}

function isSame(a: BaselineFile, b: BaselineFile): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Whether the load generator requires the mode in which another program's results were measured. */
function isAboutMode({ field }: Problem): boolean {
  return field === 'mode';
}

/** The invalid line with its neighbors. */
function Excerpt({ text, line }: { text: string; line: number }) {
  const styles = useStyles();
  const lines = text.split('\n');
  const first = Math.max(1, line - 1);
  return (
    <pre className={styles.excerpt}>
      {lines.slice(first - 1, line + 1).map((one, i) => (
        <div key={i} className={first + i === line ? styles.wrong : undefined}>
          {first + i}: {one.slice(0, 160)}
        </div>
      ))}
    </pre>
  );
}

/** The routing of an import's requests, where its file does not contain it. */
interface Run {
  /** Undefined until it is chosen. */
  mode?: Mode;
  speculation: Speculation;
}

const modes: Mode[] = ['kv', 'round_robin', 'least_loaded', 'unknown'];
const speculations: Speculation[] = ['not_recorded', 'off', 'draft', 'eagle3'];

/** The fields that no other load generator records: the routing mode, and speculation. */
function RunFields({ run, onChange }: { run: Run; onChange(run: Run): void }) {
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

const useStyles = stylesOf((theme) => ({
  form: { ...COLUMN, gap: theme.spacing(1), maxWidth: 960 },
  hidden: visuallyHidden,
  note: { color: theme.colors.text.secondary, margin: 0 },
  text: { fontFamily: theme.typography.fontFamilyMonospace, whiteSpace: 'pre', overflowX: 'auto' },
  excerpt: { margin: theme.spacing(1, 0), fontSize: theme.typography.bodySmall.fontSize },
  wrong: { fontWeight: theme.typography.fontWeightBold, color: theme.colors.error.text },
}));
