/** The two formats of exports. */
export type Format = 'csv' | 'json';

const types: Record<Format, string> = { csv: 'text/csv;charset=utf-8', json: 'application/json' };

/**
 * Returns the name of a file: its content, and the second of its export in UTC: "kv-booth-
 * comparison-20261120T100000Z.csv".
 */
export function fileName(of: string, format: Format, at: Date): string {
  const second = at.toISOString().replace(/\.\d+|[-:]/g, '');
  return `kv-booth-${of}-${second}.${format}`;
}

/** Saves a text as a file in the browser's downloads. */
export function save(text: string, name: string, format: Format): void {
  const url = URL.createObjectURL(new Blob([text], { type: types[format] }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url)); // after the browser has started the download
}
