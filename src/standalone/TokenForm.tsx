import { useState, type FormEvent } from 'react';

import { Button } from '@grafana/ui';

import { asProblem } from '../client';
import { TextField } from '../components/TextField';
import { COLUMN, stylesOf } from '../lib/styles';

interface TokenFormProps {
  signIn(token: string): Promise<void>;
  /** Called after the token was accepted. */
  onDone?(): void;
}

/** A form for the token that the load generator was started with. */
export function TokenForm({ signIn, onDone }: TokenFormProps) {
  const styles = useStyles();
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn(token.trim());
      onDone?.();
    } catch (error) {
      setProblem(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form className={styles.form} onSubmit={submit} aria-label="Token">
      <TextField
        label="Token"
        description="The token the load generator was started with (LOADGEN_TOKEN)."
        error={problem}
        type="password"
        autoComplete="current-password"
        autoFocus
        required
        value={token}
        onChange={setToken}
      />
      <Button type="submit" disabled={busy || token.trim() === ''} icon={busy ? 'spinner' : undefined}>
        Enter
      </Button>
    </form>
  );
}

function messageOf(error: unknown): string {
  const problem = asProblem(error);
  return problem.status === 401 ? 'The token is wrong.' : problem.message;
}

const useStyles = stylesOf((theme) => ({
  form: { ...COLUMN, alignItems: 'flex-start', gap: theme.spacing(2), maxWidth: 400 },
}));
