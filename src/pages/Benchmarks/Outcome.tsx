import { useId, useState } from 'react';

import { Button, LinkButton } from '@grafana/ui';

import {
  deleteSweep,
  limits,
  makeBaseline,
  secondsAddress,
  sweepReportAddress,
  useClient,
  useRenewBaselines,
  type Sweep,
} from '../../client';
import { useConfirm } from '../../components/Confirm';
import { ActionFailure } from '../../components/Controls/ActionFailure';
import { useAction } from '../../components/Controls/useAction';
import { TextField } from '../../components/TextField';
import { COLUMN, LINE, stylesOf, WRAP } from '../../lib/styles';
import { kindWord, sweepName } from '../../lib/sweeps';
import { useRenewSweeps } from '../../components/SweepResult';
import { ReportLinks } from './ReportLinks';

/** The report of a sweep in every format, and the cluster's metrics second by second. */
export function Reports({ id }: { id: string }) {
  const client = useClient();
  return (
    <ReportLinks
      what="Report"
      file={`kv-booth-report-${id}`}
      size="sm"
      variant="secondary"
      address={(format) => sweepReportAddress(client, id, format)}
    >
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
    </ReportLinks>
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

/** Deletes a sweep that has ended, after a confirmation. */
export function Delete({ sweep, isLost, onDeleted }: DeleteProps) {
  const client = useClient();
  const renew = useRenewSweeps();
  const action = useAction(undefined);
  const confirm = useConfirm();
  const remove = () =>
    action.run('delete', async () => {
      await deleteSweep(client, sweep.id);
      renew();
      onDeleted();
    });
  const question = {
    title: `Delete the ${kindWord(sweep.request.kind)}?`,
    body: `“${sweepName(sweep)}” and its report are permanently deleted. A baseline saved from it is kept.`,
    confirm: 'Delete',
    isFinal: true,
  };
  return (
    <>
      <Button
        variant="destructive"
        fill="text"
        size="sm"
        icon="trash-alt"
        disabled={isLost || action.busy !== undefined}
        onClick={() => confirm.before(question, remove)}
      >
        Delete
      </Button>
      <ActionFailure action={action} titles={{ delete: 'Deletion failed' }} />
      {confirm.dialog}
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
