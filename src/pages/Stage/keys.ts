/** A key, or several, with its description. */
type Key = [keys: string, does: string];

/** The keys of the stage view with their descriptions, in the order of the list. Some exist only with a second lane. */
export function keysOf(twin: boolean): Key[] {
  const both: Key[] = [
    ['T', 'Shows both routers side by side, or one of them'],
    ['C', 'Side by side: starts a showcase'],
  ];
  return [
    ['Space', 'Starts the workload; stops it after a confirmation'],
    ['K', 'Changes to KV-aware routing, after a confirmation while it runs'],
    ['R', 'Changes to round-robin routing, after a confirmation while it runs'],
    ['↑ ↓', 'More or fewer conversations, by one increment'],
    ...(twin ? both : []),
    ['?', 'Shows these keys'],
    ['Esc', 'Leaves the stage view'],
  ];
}
