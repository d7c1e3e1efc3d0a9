/** The value at a path such as `turns.min`; undefined where the object has none. */
export function valueAt(object: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], object);
}

/** A copy of the object with another value at a path. */
export function withValue<T extends object>(object: T, path: string, value: unknown): T {
  const [key, ...rest] = path.split('.');
  const inner = (object as Record<string, object | undefined>)[key] ?? {};
  return { ...object, [key]: rest.length > 0 ? withValue(inner, rest.join('.'), value) : value };
}
