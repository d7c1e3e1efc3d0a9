/** Begins a text with a capital letter. */
export function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Turns the API's words, which begin in lower case without a full stop, into a sentence. */
export function sentence(words: string): string {
  return words === '' || /[.!?]$/.test(words) ? capital(words) : `${capital(words)}.`;
}
