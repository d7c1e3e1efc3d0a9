/** What is wrong with a text that is to be a whole number in a range; undefined where nothing is. */
export function wholeNumber(text: string, min: number, max: number): string | undefined {
  const value = Number(text);
  const fine = text.trim() !== '' && Number.isInteger(value) && value >= min && value <= max;
  return fine ? undefined : `A whole number from ${min} to ${max}`;
}

/** What is wrong with a text that is to be a number in a range, of which the lower end may be excluded. */
export function decimalNumber(text: string, min: number, max: number, aboveMin = false): string | undefined {
  const value = Number(text);
  const fine =
    text.trim() !== '' && Number.isFinite(value) && value >= min && value <= max && !(aboveMin && value === min);
  if (fine) {
    return undefined;
  }
  return aboveMin ? `A number above ${min}, up to ${max}` : `A number from ${min} to ${max}`;
}
