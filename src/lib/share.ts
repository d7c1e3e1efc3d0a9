/**
 * Gives next with those parts of prev in it that say the same, so that what did
 * not change is also the same object. For JSON values; neither is changed.
 */
export function share<T>(prev: unknown, next: T): T {
  if (
    Object.is(prev, next) ||
    !isContainer(prev) ||
    !isContainer(next) ||
    Array.isArray(prev) !== Array.isArray(next)
  ) {
    return next;
  }
  const entries = Object.entries(next);
  const shared = entries.map(([key, value]) => [key, share(prev[key], value)] as const);
  const same =
    Object.keys(prev).length === entries.length && shared.every(([key, value]) => Object.is(prev[key], value));
  if (same) {
    return prev as T;
  }
  return (Array.isArray(next) ? shared.map(([, value]) => value) : Object.fromEntries(shared)) as T;
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
