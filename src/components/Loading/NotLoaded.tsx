import type { PropsWithChildren } from 'react';

import { Alert } from '@grafana/ui';

import type { Problem } from '../../client';
import { Loading } from './Loading';

interface LoadProblemProps {
  /** What is not loaded: "recorded results". */
  what: string;
  problem?: Problem;
}

/** Reports why something could not be loaded. It renders nothing without a problem. */
export function LoadProblem({ what, problem, children }: PropsWithChildren<LoadProblemProps>) {
  return problem ? (
    <Alert severity="warning" title={`The ${what} could not be loaded`} bottomSpacing={1}>
      {problem.message} {children}
    </Alert>
  ) : null;
}

/** What is in place of something that is not loaded: why, or that it is loading. */
export function NotLoaded(props: LoadProblemProps) {
  return props.problem ? <LoadProblem {...props} /> : <Loading text={`Loading the ${props.what}…`} />;
}
