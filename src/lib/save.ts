/** The two formats of what is exported. */
export type Format = 'csv' | 'json';

const types: Record<Format, string> = { csv: 'text/csv;charset=utf-8', json: 'application/json' };

/**
 * The name of a file: what it is of, and the second it was made, by UTC: "kv-booth-comparison-20261120T100000Z.csv".
 */
export function fileName(of: string, format: Format, at: Date): string {
  const second = at.toISOString().replace(/\.\d+|[-:]/g, '');
  return `kv-booth-${of}-${second}.${format}`;
}

/** Saves a text as a file among the browser's downloads. */
export function save(text: string, name: string, format: Format): void {
  const url = URL.createObjectURL(new Blob([text], { type: types[format] }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url)); // once the browser has taken it
}
