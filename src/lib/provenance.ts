import type { Baseline } from '../client';

/** The known origin of a baseline's figures, as names with values. */
export function provenanceOf({ provenance, workload }: Baseline): Array<{ name: string; value: string }> {
  const { runs = [], region, interconnect, services, between_modes: between } = provenance ?? {};
  const known = [
    { name: 'Runs', value: runs.map(({ file, date }) => (date ? `${file} (${moment(date)})` : file)).join(', ') },
    { name: 'Region', value: region },
    { name: 'Interconnect', value: interconnect },
    { name: 'Services', value: services },
    { name: 'Target rate', value: workload?.target_rps ? `${workload.target_rps} requests/s` : undefined },
    { name: 'Between modes', value: between },
  ];
  return known.flatMap(({ name, value }) => (value ? [{ name, value }] : []));
}

/** Formats a time as 2026-02-17 12:52 UTC. */
function moment(time: string): string {
  return `${new Date(time).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
