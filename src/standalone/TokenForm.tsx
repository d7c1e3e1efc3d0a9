import { useId, useState, type FormEvent } from 'react';

import { Button, Field, Input } from '@grafana/ui';

import { asProblem } from '../client';
import { stylesOf } from '../lib/styles';

interface TokenFormProps {
  signIn(token: string): Promise<void>;
  /** Called after the token was accepted. */
  onDone?(): void;
}

/** A form for the token that the load generator was started with. */
export function TokenForm({ signIn, onDone }: TokenFormProps) {
  const styles = useStyles();
  const id = useId();
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
      <Field
        label="Token"
        htmlFor={id}
        description="The token the load generator was started with (LOADGEN_TOKEN)."
        invalid={problem !== undefined}
        error={problem}
        noMargin
      >
        <Input
          id={id}
          type="password"
          autoComplete="current-password"
          autoFocus
          required
          value={token}
          onChange={({ currentTarget }) => setToken(currentTarget.value)}
        />
      </Field>
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
  form: {
    display: 'flex',
    flexDirection: 'column',
    alignItems: 'flex-start',
    gap: theme.spacing(2),
    maxWidth: 400,
  },
}));
