import { Alert } from '@grafana/ui';

import type { Action } from './useAction';

interface ActionFailureProps {
  action: Action;
  /** The title of each request's failure, by its name. */
  titles: Record<string, string>;
}

/** Reports the last failure of an action until it is dismissed. It renders nothing without one. */
export function ActionFailure({ action: { failure, dismiss }, titles }: ActionFailureProps) {
  return failure ? (
    <Alert severity="error" title={titles[failure.name] ?? 'The action failed'} onRemove={dismiss} bottomSpacing={0}>
      {failure.problem.message}
    </Alert>
  ) : null;
}
