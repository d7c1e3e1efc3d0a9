import { readFileSync } from 'fs';
import { join } from 'path';

import type { Baseline, Sustained } from '../client';

/** Returns a built-in table, read from its file as the load generator reads it. For tests. */
export function builtIn(name: string, sustained?: Baseline['sustained']): Baseline {
  const file = readFileSync(join(__dirname, '../../sidecar/loadgen/baseline/data', `${name}.csv`), 'utf8');
  const lines = file.split('\n').filter((line) => line !== '');
  const notes = lines.filter((line) => /^# (?![a-z_]+: )/.test(line)).map((line) => line.slice(2));
  const json = (key: string) => {
    const text = lines.find((line) => line.startsWith(`# ${key}: `))?.slice(`# ${key}: `.length);
    return text && JSON.parse(text);
  };
  const [heads, ...rows] = lines.filter((line) => !line.startsWith('#')).map((line) => line.split(','));
  return {
    name,
    title: name,
    kind: 'recorded',
    notes: notes.join('\n'),
    deployment: { engine: 'trtllm', model: 'Llama 3.1 70B Instruct FP8', gpu: 'H200', workers: 3, tensor_parallel: 1 },
    provenance: { printed_levels: json('printed_levels'), turns: json('turns') },
    rows: rows.map((cells) => row(heads, cells)),
    sustained,
  };
}

function row(heads: string[], cells: string[]): Baseline['rows'][number] {
  const read = (head: string, unit: number) => {
    const cell = cells[heads.indexOf(head)] ?? '';
    return cell === '' ? undefined : Number(cell) / unit;
  };
  const pair = (head: string) => ({ p50: read(`${head}_p50_ms`, 1000), p95: read(`${head}_p95_ms`, 1000) });
  return {
    concurrency: Number(cells[0]),
    mode: cells[1] === 'kv' ? 'kv' : 'round_robin',
    speculation: 'not_recorded',
    ttft: pair('ttft'),
    tpot: pair('itl'),
    tpot_derived: pair('tpot'),
    itl: {},
    latency: pair('latency'),
    output_tokens_per_second: read('tops', 1),
    requests_per_second: read('rps', 1),
    kv_hit_ratio: read('kv_hit_rate_pct', 100),
    inflight_spread_min: read('inflight_spread_min', 1),
    inflight_spread_max: read('inflight_spread_max', 1),
    inflight_mean: read('inflight_mean', 1),
    inflight_threshold: read('inflight_threshold', 1),
    queue_largest: read('queue_max_ms', 1000),
    queue_second: read('queue_second_ms', 1000),
    queue_before: read('queue_before_ms', 1000),
    recovery_min: read('recovery_min_ms', 1000),
    recovery_max: read('recovery_max_ms', 1000),
  };
}

/** Returns the load generator's description of a mode of a table. For tests. */
export function judged(mode: 'kv' | 'round_robin', change: Partial<Sustained>): Sustained {
  const slo = { ttft: 0.6, tpot: 0.06 };
  return { mode, speculation: 'not_recorded', slo, isolated: [], ttft_only: [], untested: [], ...change };
}
