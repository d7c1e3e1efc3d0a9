import { useId, useState } from 'react';

import { Button, ConfirmModal, LinkButton } from '@grafana/ui';

import {
  deleteSweep,
  limits,
  makeBaseline,
  secondsAddress,
  sweepReportAddress,
  useClient,
  useRenewBaselines,
  type ReportFormat,
  type Sweep,
} from '../../client';
import { ActionFailure } from '../../components/Controls/ActionFailure';
import { useAction } from '../../components/Controls/useAction';
import { TextField } from '../../components/TextField';
import { COLUMN, LINE, stylesOf, WRAP } from '../../lib/styles';
import { kindWord, sweepName } from '../../lib/sweeps';
import { hasEnded, useRenewSweeps } from '../../components/SweepResult';

const files: Array<{ format: ReportFormat; label: string }> = [
  { format: 'md', label: 'Markdown' },
  { format: 'tsv', label: 'TSV' },
  { format: 'json', label: 'JSON' },
];

/** The report of a sweep in every format, and the cluster's metrics second by second. */
export function Reports({ id }: { id: string }) {
  const styles = useStyles();
  const client = useClient();
  return (
    <div className={styles.row} role="group" aria-label="Report">
      <LinkButton
        variant="secondary"
        size="sm"
        icon="file-alt"
        href={sweepReportAddress(client, id, 'html')}
        target="_blank"
        rel="noreferrer"
      >
        Open the report
      </LinkButton>
      {files.map(({ format, label }) => (
        // Grafana would take a link without a target for one of its own pages.
        <LinkButton
          key={format}
          variant="secondary"
          fill="text"
          size="sm"
          icon="download-alt"
          href={sweepReportAddress(client, id, format)}
          target="_self"
          download={`kv-booth-report-${id}.${format}`}
          aria-label={`Report as ${label}`}
        >
          {label}
        </LinkButton>
      ))}
      <LinkButton
        variant="secondary"
        fill="text"
        size="sm"
        icon="download-alt"
        href={secondsAddress(client, id)}
        target="_self"
        download={`kv-booth-seconds-${id}.csv`}
      >
        Per-second data, CSV
      </LinkButton>
    </div>
  );
}

/** A form that makes a baseline of a sweep's measurements, which the comparison then offers. */
export function MakeBaseline({ sweep, isLost }: { sweep: Sweep; isLost: boolean }) {
  const styles = useStyles();
  const client = useClient();
  const id = useId();
  const renewSweeps = useRenewSweeps();
  const renewBaselines = useRenewBaselines();
  const action = useAction(undefined);
  const [isOpen, open] = useState(false);
  const [name, setName] = useState(`${sweep.request.kind}-${sweep.id}`);
  const [title, setTitle] = useState(sweepName(sweep));
  const [made, setMade] = useState<string>();
  const problem = action.failure?.problem;
  const errorAt = (field: string) => (problem?.field === field ? problem.message : undefined);
  const make = () =>
    action.run('baseline', async () => {
      const baseline = await makeBaseline(client, sweep.id, { name: name.trim(), title: title.trim() || undefined });
      setMade(baseline.title);
      open(false);
      renewBaselines();
      renewSweeps(sweep.id);
    });
  return (
    <div className={styles.make}>
      <div className={styles.row}>
        <Button
          variant="secondary"
          size="sm"
          icon="bookmark"
          aria-expanded={isOpen}
          aria-controls={isOpen ? id : undefined}
          onClick={() => open(!isOpen)}
        >
          Save as baseline
        </Button>
        <span role="status">
          {made !== undefined
            ? `“${made}” saved as a baseline: every page can now compare live figures with it.`
            : sweep.baseline && `Saved as the baseline “${sweep.baseline}”.`}
        </span>
      </div>
      {isOpen && (
        <form
          id={id}
          className={styles.form}
          aria-label="Save as baseline"
          onSubmit={(event) => {
            event.preventDefault();
            void make();
          }}
        >
          <TextField
            label="Name"
            description="Unique identifier."
            width={34}
            maxLength={limits['comparison.baseline'].max}
            error={errorAt('name')}
            value={name}
            onChange={setName}
          />
          <TextField
            label="Title"
            description="Display name."
            width={44}
            maxLength={limits.title.max}
            error={errorAt('title')}
            value={title}
            onChange={setTitle}
          />
          <Button type="submit" size="sm" disabled={isLost || action.busy !== undefined || name.trim() === ''}>
            Save baseline
          </Button>
        </form>
      )}
      {problem?.field !== 'name' && problem?.field !== 'title' && (
        <ActionFailure action={action} titles={{ baseline: 'The baseline was not saved' }} />
      )}
    </div>
  );
}

interface DeleteProps {
  sweep: Sweep;
  isLost: boolean;
  onDeleted(): void;
}

/** Deletes a sweep after a confirmation. */
export function Delete({ sweep, isLost, onDeleted }: DeleteProps) {
  const client = useClient();
  const renew = useRenewSweeps();
  const action = useAction(undefined);
  const [asks, ask] = useState(false);
  const word = kindWord(sweep.request.kind);
  if (!hasEnded(sweep.state)) {
    return null;
  }
  return (
    <>
      <Button
        variant="destructive"
        fill="text"
        size="sm"
        icon="trash-alt"
        disabled={isLost || action.busy !== undefined}
        onClick={() => ask(true)}
      >
        Delete
      </Button>
      <ActionFailure action={action} titles={{ delete: 'Deletion failed' }} />
      <ConfirmModal
        isOpen={asks}
        title={`Delete the ${word}?`}
        body={`“${sweepName(sweep)}” and its report are permanently deleted. A baseline saved from it is kept.`}
        confirmText="Delete"
        onConfirm={() => {
          ask(false);
          void action.run('delete', async () => {
            await deleteSweep(client, sweep.id);
            renew();
            onDeleted();
          });
        }}
        onDismiss={() => ask(false)}
      />
    </>
  );
}

const useStyles = stylesOf((theme) => ({
  row: { ...LINE, gap: theme.spacing(1) },
  make: { ...COLUMN, gap: theme.spacing(1) },
  form: {
    ...WRAP,
    alignItems: 'flex-end',
    gap: theme.spacing(1, 2),
    '& > *': { maxWidth: '100%' },
  },
}));
