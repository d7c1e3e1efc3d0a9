import type { Baseline, Settings } from '../../client';
import { milliseconds } from '../../lib/format';
import { provenanceOf } from '../../lib/provenance';
import { Notes, SLONotes } from '../Comparison';

/** The legend of the table, with the source of its figures. */
export function BenchmarkNotes({ baseline, settings: { slo } }: { baseline: Baseline; settings: Settings }) {
  const derived = baseline.rows.some((row) => row.tpot_derived.p95 !== undefined);
  return (
    <Notes>
      <li>
        SLO: TTFT p95 ≤ {milliseconds(slo.ttft, 0)}, TPOT p95 ≤ {milliseconds(slo.tpot, 0)}
      </li>
      <SLONotes />
      <li>Improvement: KV-aware vs. round-robin; + is better</li>
      {derived && (
        <li>
          <i>derived</i>: computed from other percentiles when recorded; not compared with live figures
        </li>
      )}
      {provenanceOf(baseline).map(({ name, value }) => (
        <li key={name}>
          {name}: {value}
        </li>
      ))}
    </Notes>
  );
}
