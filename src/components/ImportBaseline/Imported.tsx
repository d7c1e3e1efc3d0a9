import { useState } from 'react';

import { Alert, Button } from '@grafana/ui';

import { asProblem, deleteBaseline, useClient, useRenewBaselines, type Baseline } from '../../client';
import { LINE, stylesOf } from '../../lib/styles';

/** The imported baselines, each of which can be deleted. */
export function Imported({ baselines }: { baselines: Baseline[] }) {
  const styles = useStyles();
  const client = useClient();
  const renew = useRenewBaselines();
  const [asked, setAsked] = useState<string>();
  const [problem, setProblem] = useState<string>();
  const imported = baselines.filter(({ kind }) => kind === 'imported');
  const remove = async (name: string) => {
    setAsked(undefined);
    try {
      await deleteBaseline(client, name);
      setProblem(undefined);
    } catch (error) {
      setProblem(asProblem(error).message);
    }
    renew();
  };
  return (
    <div>
      {problem && (
        <Alert severity="error" title="Deletion failed">
          {problem}
        </Alert>
      )}
      {imported.length === 0 && <p className={styles.none}>No imported baselines yet.</p>}
      <ul className={styles.list} aria-label="Imported baselines">
        {imported.map(({ name, title }) => (
          <li key={name}>
            <span>
              {title} <small>{name}</small>
            </span>
            {asked === name ? (
              <>
                <Button type="button" size="sm" variant="destructive" onClick={() => remove(name)}>
                  Delete “{title}” for all users
                </Button>
                <Button type="button" size="sm" variant="secondary" autoFocus onClick={() => setAsked(undefined)}>
                  Keep it
                </Button>
              </>
            ) : (
              <Button
                type="button"
                size="sm"
                variant="secondary"
                aria-label={`Delete ${title}`}
                onClick={() => setAsked(name)}
              >
                Delete
              </Button>
            )}
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
