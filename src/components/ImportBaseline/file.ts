import { times, type Baseline, type BaselineFile } from '../../client';
import { inSentence } from '../../lib/figures';
import { rangesOf } from '../../lib/level';

/** The largest size of a file, in bytes, as limited by the API. */
export const MAX_FILE = 1 << 20;

/** Detects the format of a text: JSON begins with a brace. */
export function formatOf(text: string): BaselineFile['format'] {
  return text.trimStart().startsWith('{') ? 'json' : 'csv';
}

/** Derives a baseline's name from that of its file. */
export function nameOf(fileName: string): string {
  return fileName
    .replace(/\.[A-Za-z]+$/, '')
    .replace(/[^A-Za-z0-9 ._+-]+/g, '-')
    .replace(/^[^A-Za-z0-9]+/, '')
    .slice(0, 100);
}

/** Whether a text is a baseline with a name of its own. Tables and other programs' results have none. */
export function hasOwnName(text: string): boolean {
  try {
    const read: unknown = JSON.parse(text);
    return typeof read === 'object' && read !== null && 'name' in read;
  } catch {
    return false;
  }
}

/** Returns the line that a problem of the API concerns: "line 7, column ttft_p95_ms". */
export function lineOf(field: string | undefined): number | undefined {
  const found = /^line (\d+)\b/.exec(field ?? '');
  return found ? Number(found[1]) : undefined;
}

/** Returns the range of a line in a text. */
export function placeOf(text: string, line: number): [number, number] {
  const before = text.split('\n').slice(0, line - 1);
  const begin = before.reduce((sum, one) => sum + one.length + 1, 0);
  const end = text.indexOf('\n', begin);
  return [begin, end < 0 ? text.length : end];
}

/** Describes a preview in a sentence: rows, levels, modes, and their contents. */
export function summary({ rows }: Baseline): string {
  const levels = Array.from(new Set(rows.map((row) => row.concurrency)));
  const has = (name: string, of: (row: Baseline['rows'][number]) => unknown) =>
    rows.some((row) => of(row)) ? [name] : [];
  const held = [
    ...times.flatMap((key) => has(inSentence(key), (row) => row[key].p50 ?? row[key].p95)),
    ...has('derived TPOT', ({ tpot_derived }) => tpot_derived.p50 ?? tpot_derived.p95),
    ...has('output tokens/s', (row) => row.output_tokens_per_second),
    ...has('requests/s', (row) => row.requests_per_second),
    ...has('KV hit rate', (row) => row.kv_hit_ratio),
    ...has('acceptance rate', (row) => row.acceptance_rate),
    ...has('tokens per step', (row) => row.tokens_per_step),
    ...has('memory of a GPU', (row) => row.gpu_memory_bytes),
  ];
  const span =
    levels.length > 1
      ? `${levels.length} levels from ${rangesOf(levels)
          .map(([low, high]) => `${low} to ${high}`)
          .join(' and ')}`
      : `level ${levels[0]}`;
  return (
    `${rows.length} ${rows.length === 1 ? 'row' : 'rows'}, ${span}; ` +
    `${held.length > 0 ? held.join(', ') : 'no values'}`
  );
}
