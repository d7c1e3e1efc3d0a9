import { Alert } from '@grafana/ui';

import { useTwin } from '../../client';
import { Loading } from '../Loading';
import { Pairs } from './Pairs';

/** The comparison of two lanes turn by turn. With one lane, it explains how to get a second one. */
export function PairsOfLanes() {
  const { value, problem } = useTwin(true);
  if (problem?.status === 404) {
    const words = problem.message.replace(/^not found: /, '');
    return <p>{`${words.charAt(0).toUpperCase()}${words.slice(1)}.`}</p>;
  }
  return (
    <>
      {problem && (
        <Alert severity="warning" title="The comparison could not be loaded" bottomSpacing={1}>
          {problem.message}
        </Alert>
      )}
      {!value && !problem && <Loading text="Loading both lanes…" />}
      {value && !problem && <Pairs twin={value} />}
    </>
  );
}
