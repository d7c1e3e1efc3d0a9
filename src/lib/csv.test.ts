/** @jest-environment node */
import { toCsv } from './csv';

it('follows RFC 4180, with empty cells for missing values', () => {
  expect(
    toCsv(
      ['a', 'b'],
      [
        ['x', 1.5],
        [undefined, false],
      ]
    )
  ).toBe('a,b\r\nx,1.5\r\n,false\r\n');
  expect(toCsv(['a'], [['say "no", please'], ['two\nlines']])).toBe('a\r\n"say ""no"", please"\r\n"two\nlines"\r\n');
});

it.each([
  [-1, '-1'],
  ['-5', '-5'],
  ['+1.5e-3', '+1.5e-3'],
  ['=1+1', "'=1+1"],
  ['@x', "'@x"],
  ['-y', "'-y"],
  ['  +x', "'  +x"],
  ['\t', "'\t"],
  ['＝1', "'＝1"],
  ['a;=1', "a;'=1"],
  ['a\n-b', `"a\n'-b"`],
  ['a - b', 'a - b'],
])('keeps the text %j from being a formula, and leaves numbers alone', (value, cell) => {
  expect(toCsv(['a'], [[value]])).toBe(`a\r\n${cell}\r\n`);
});
