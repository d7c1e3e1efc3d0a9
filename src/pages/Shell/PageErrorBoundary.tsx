import { Component, useEffect, useRef, type PropsWithChildren } from 'react';

import { Alert, Button, Stack } from '@grafana/ui';

import { useLive } from '../../client';
import { LANE } from '../lane';

interface Props {
  title: string;
  /** Retries the page, including the loading of its code. */
  retry(): void;
  reload?(): void;
}

interface State {
  error?: unknown;
}

/** Confines an error to its page, and offers the next step. */
export class PageErrorBoundary extends Component<PropsWithChildren<Props>, State> {
  state: State = {};

  static getDerivedStateFromError(error: unknown): State {
    return { error: error ?? 'unknown' };
  }

  render() {
    const { children, ...props } = this.props;
    const { error } = this.state;
    return error === undefined ? children : <Failure {...props} error={error} />;
  }
}

function Failure({ title, error, retry, reload = () => window.location.reload() }: Props & { error: unknown }) {
  const { status } = useLive(LANE).state;
  const lost = useRef(false);
  useEffect(() => {
    if (status === 'live' && lost.current) {
      retry(); // a page's code and the snapshots have the same server
    }
    lost.current = status === 'lost';
  }, [status, retry]);
  return (
    <Alert severity="error" title={`“${title}” failed to load`}>
      <p>
        The other pages and the workload are not affected.{' '}
        {status === 'lost'
          ? 'The page reloads automatically once the load generator is back.'
          : 'Trying again often helps and does not affect the workload.'}
      </p>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      <Stack>
        <Button variant="secondary" icon="sync" onClick={retry}>
          Try again
        </Button>
        {status !== 'lost' && (
          <Button variant="secondary" fill="text" onClick={reload}>
            Reload everything
          </Button>
        )}
      </Stack>
    </Alert>
  );
}
