import { useMemo } from 'react';

import { useBaselines, useLive, type BaselineRow, type Sweep } from '../../client';
import { recordedTable } from '../../lib/recorded';
import { comparableRows } from './model';

/** The recorded results that are comparable with a sweep's figures. */
export interface Recorded {
  title: string;
  rows: BaselineRow[];
}

/** Returns the recorded table's rows of a sweep's modes and range of levels; undefined without any. */
export function useRecorded({ lane, rows, request: { slo } }: Sweep): Recorded | undefined {
  const live = useLive(lane);
  const { value } = useBaselines(slo);
  const table = recordedTable(value, live.lane);
  return useMemo(() => {
    const beside = table ? comparableRows(rows, table.rows) : [];
    return table && beside.length > 0 ? { title: table.title, rows: beside } : undefined;
  }, [table, rows]);
}
