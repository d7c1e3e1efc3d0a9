import React, { Component, type PropsWithChildren } from 'react';

import { Alert, Button } from '@grafana/ui';

interface Props {
  /** The page's title. */
  title: string;
  /** Loads the whole page anew. */
  reload?(): void;
}

interface State {
  error?: unknown;
}

/** Keeps the fault of one page from taking the others with it, and says what can be done. */
export class PageErrorBoundary extends Component<PropsWithChildren<Props>, State> {
  state: State = {};

  static getDerivedStateFromError(error: unknown): State {
    return { error: error ?? 'unknown' };
  }

  render() {
    const { title, reload = () => window.location.reload(), children } = this.props;
    const { error } = this.state;
    if (error === undefined) {
      return children;
    }
    return (
      <Alert severity="error" title={`“${title}” cannot be shown`}>
        <p>The other pages and the workload go on. Reloading often helps, and changes nothing of the workload.</p>
        <p>{error instanceof Error ? error.message : String(error)}</p>
        <Button variant="secondary" icon="sync" onClick={reload}>
          Reload
        </Button>
      </Alert>
    );
  }
}
