import { useState, type FormEvent } from 'react';

import { Button } from '@grafana/ui';

import type { Problem } from '../client';
import { useAction } from '../components/Controls/useAction';
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
  const { busy, failure, run } = useAction(undefined);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (await run('sign in', () => signIn(token.trim()))) {
      onDone?.();
    }
  };
  return (
    <form className={styles.form} onSubmit={submit} aria-label="Token">
      <TextField
        label="Token"
        description="The token the load generator was started with (LOADGEN_TOKEN)."
        error={failure && messageOf(failure.problem)}
        type="password"
        autoComplete="current-password"
        autoFocus
        required
        value={token}
        onChange={setToken}
      />
      <Button type="submit" disabled={Boolean(busy) || token.trim() === ''} icon={busy ? 'spinner' : undefined}>
        Enter
      </Button>
    </form>
  );
}

function messageOf({ status, message }: Problem): string {
  return status === 401 ? 'The token is wrong.' : message;
}

const useStyles = stylesOf((theme) => ({
  form: { ...COLUMN, alignItems: 'flex-start', gap: theme.spacing(2), maxWidth: 400 },
}));
