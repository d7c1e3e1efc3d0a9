import { memo, useState } from 'react';

import { Button, Modal } from '@grafana/ui';

import { useAction } from '../components/Controls/useAction';
import { TokenForm } from './TokenForm';
import { useScheme } from './useScheme';
import type { Access } from './useSession';

/** What the page has that Grafana has elsewhere: who one is, and the colours. */
export const Tools = memo(function Tools({ access }: { access: Access }) {
  const { session } = access;
  return (
    <>
      {session?.token_required && !session.authenticated && <EnterToken access={access} />}
      {session?.authenticated && <SignOut access={access} />}
      <SchemeSwitch />
    </>
  );
});

function EnterToken({ access: { signIn } }: { access: Access }) {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <Button variant="secondary" icon="key-skeleton-alt" onClick={() => setOpen(true)}>
        Enter token
      </Button>
      {open && (
        <Modal title="Operate the workload" isOpen onDismiss={close}>
          <TokenForm signIn={signIn} onDone={close} />
        </Modal>
      )}
    </>
  );
}

function SignOut({ access: { signOut } }: { access: Access }) {
  const { failure, run } = useAction(undefined);
  return (
    <>
      <Button variant="secondary" icon="signout" onClick={() => run('sign out', signOut)}>
        Sign out
      </Button>
      {failure && <span role="alert">Sign-out failed: {failure.problem.message}</span>}
    </>
  );
}

function SchemeSwitch() {
  const [scheme, choose] = useScheme();
  const other = scheme === 'dark' ? 'light' : 'dark';
  return (
    <Button
      variant="secondary"
      fill="text"
      icon="adjust-circle"
      aria-label={`Switch to ${other} colors`}
      tooltip={`Switch to ${other} colors`}
      onClick={() => choose(other)}
    />
  );
}
