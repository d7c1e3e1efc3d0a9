import { Button } from '@grafana/ui';

import { deleteBaseline, useClient, useRenewBaselines, type Baseline } from '../../client';
import { LINE, stylesOf } from '../../lib/styles';
import { useConfirm } from '../Confirm';
import { ActionFailure } from '../Controls/ActionFailure';
import { useAction } from '../Controls/useAction';

/** The imported baselines, each of which can be deleted. */
export function Imported({ baselines }: { baselines: Baseline[] }) {
  const styles = useStyles();
  const client = useClient();
  const renew = useRenewBaselines();
  const action = useAction(undefined);
  const confirm = useConfirm();
  const imported = baselines.filter(({ kind }) => kind === 'imported');
  const remove = ({ name, title }: Baseline) =>
    confirm.before(
      {
        title: `Delete “${title}”?`,
        body: 'It is deleted for all users.',
        confirm: 'Delete',
        dismiss: 'Keep it',
        isFinal: true,
      },
      () => action.run('delete', () => deleteBaseline(client, name)).then(renew)
    );
  return (
    <div>
      <ActionFailure action={action} titles={{ delete: 'Deletion failed' }} />
      {confirm.dialog}
      {imported.length === 0 && <p className={styles.none}>No imported baselines yet.</p>}
      <ul className={styles.list} aria-label="Imported baselines">
        {imported.map((baseline) => (
          <li key={baseline.name}>
            <span>
              {baseline.title} <small>{baseline.name}</small>
            </span>
            <Button
              type="button"
              size="sm"
              variant="secondary"
              aria-label={`Delete ${baseline.title}`}
              onClick={() => remove(baseline)}
            >
              Delete
            </Button>
          </li>
        ))}
      </ul>
    </div>
  );
}

const useStyles = stylesOf((theme) => ({
  none: { color: theme.colors.text.secondary },
  list: {
    listStyle: 'none',
    '& li': { ...LINE, gap: theme.spacing(1), padding: theme.spacing(0.5, 0) },
    '& small': { color: theme.colors.text.secondary },
  },
}));
