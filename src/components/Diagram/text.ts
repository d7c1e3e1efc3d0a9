/** Shortens a name to so many letters. Its end stays, since pods of one deployment differ there. */
export function shorten(name: string, letters: number): string {
  return name.length <= letters ? name : `…${name.slice(name.length - letters + 1)}`;
}
