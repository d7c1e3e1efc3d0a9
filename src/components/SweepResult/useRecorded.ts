import { useMemo } from 'react';

import { useBaselines, useLive, type BaselineRow, type Sweep } from '../../client';
import { recordedTable } from '../../lib/recorded';
import { besideOf } from './model';

/** What was recorded that a sweep's figures can stand beside. */
export interface Recorded {
  title: string;
  rows: BaselineRow[];
}

/** The recorded table's rows of a sweep's modes and range of levels; undefined where there are none. */
export function useRecorded({ lane, rows, request: { slo } }: Sweep): Recorded | undefined {
  const live = useLive(lane);
  const { value } = useBaselines(slo);
  const table = recordedTable(value, live.lane);
  return useMemo(() => {
    const beside = table ? besideOf(rows, table.rows) : [];
    return table && beside.length > 0 ? { title: table.title, rows: beside } : undefined;
  }, [table, rows]);
}
