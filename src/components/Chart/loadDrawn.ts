/** The pause after a failure, in milliseconds. */
const AGAIN_AFTER = 5000;

/**
 * Loads what plots are drawn with, which is large: what a page says in words is not to wait for it. It is asked for
 * until it comes, since it comes from the load generator, which may be lost.
 */
export async function loadDrawn(): Promise<typeof import('./Drawn')> {
  for (;;) {
    try {
      return await import('./Drawn');
    } catch {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_AFTER));
    }
  }
}
