/** Tells listeners of a commit: a hint's receiver can neither disturb the store nor the other receivers. */
import type { Wake } from '../store.ts';

/** Calls every listener with a list of its own; what one throws, at once or later, is its own affair. */
export function tellAll(listeners: readonly { readonly wake: Wake }[], queues: readonly string[]): void {
  for (const { wake } of listeners) {
    try {
      const answer: unknown = wake({ queues: [...queues] });
      if (answer instanceof Promise) answer.catch(() => undefined);
    } catch {
      // The commit it hears of has happened; there is nobody to tell of its listener's failure.
    }
  }
}
