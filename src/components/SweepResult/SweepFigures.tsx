import type { Sweep } from '../../client';
import { SweepCurves } from './SweepCurves';
import { SweepTable } from './SweepTable';
import { useRecorded } from './useRecorded';

/** The measurements of a sweep beside recorded ones: curves where it has several levels, and all figures as a table. */
export function SweepFigures({ sweep }: { sweep: Sweep }) {
  const recorded = useRecorded(sweep);
  const { rows, request } = sweep;
  if (rows.length === 0) {
    return <p role="status">No valid span yet: figures appear with the first one.</p>;
  }
  return (
    <>
      {(request.levels ?? []).length > 1 && <SweepCurves sweep={sweep} recorded={recorded} />}
      <SweepTable sweep={sweep} recorded={recorded} />
    </>
  );
}
