/** The value of a cell; undefined leaves it empty. */
export type CsvValue = string | number | boolean | undefined;

/** Formats a table as in RFC 4180: a line of names, then a line for each row, each ended by CRLF. */
export function toCsv(names: string[], rows: CsvValue[][]): string {
  return [names, ...rows].map((row) => `${row.map(field).join(',')}\r\n`).join('');
}

const beginsFormula = /^([\t\r\n]|\s*[=+\-@＝＋－＠])/;
const innerFormula = /([;|\t\r\n]\s*)([=+\-@＝＋－＠])/g;
const plainNumber = /^[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?$/i;

/**
 * Prefixes a text that a spreadsheet would interpret as a formula with an apostrophe: at the beginning of the cell, and
 * after any character that begins a cell where the file is read with another separator. Numbers are unchanged.
 */
function escapeFormula(text: string): string {
  if (plainNumber.test(text)) {
    return text;
  }
  const inner = text.replace(innerFormula, "$1'$2");
  return beginsFormula.test(inner) ? `'${inner}` : inner;
}

function field(value: CsvValue): string {
  const text = typeof value === 'string' ? escapeFormula(value) : String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
