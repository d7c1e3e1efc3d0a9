/** @jest-environment node */
import { toCsv } from './csv';

it('is what RFC 4180 has, with empty cells for what is not known', () => {
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

it('keeps a text from being a formula, and leaves numbers alone', () => {
  expect(
    toCsv(
      ['a', 'b'],
      [
        ['=1+1', -1],
        ['@x', '-y'],
      ]
    )
  ).toBe("a,b\r\n'=1+1,-1\r\n'@x,'-y\r\n");
});
