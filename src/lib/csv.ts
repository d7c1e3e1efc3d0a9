/** What a cell of a table holds; undefined leaves it empty. */
export type CsvValue = string | number | boolean | undefined;

/** A table as RFC 4180 has it: a line of names, then a line for each row, ended by CRLF. */
export function toCsv(names: string[], rows: CsvValue[][]): string {
  return [names, ...rows].map((row) => `${row.map(field).join(',')}\r\n`).join('');
}

/** A text that a spreadsheet would take for a formula gets an apostrophe in front, which it does not show. */
function field(value: CsvValue): string {
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
