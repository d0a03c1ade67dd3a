/** Whether two requests are the same: by every byte of their descriptors, so that no two jobs are ever silently merged. */

/** Outcomes of an enqueue under an idempotency key. */
export const ENQUEUE = { FRESH: 0, DUPLICATE: 1, CONFLICT: 2 } as const;

/** An enqueue outcome, 0 to 2. */
export type EnqueueOutcome = (typeof ENQUEUE)[keyof typeof ENQUEUE];

/**
 * Whether two byte strings have the same length and the same bytes. Not constant in time: descriptors are no secrets.
 *
 * @example
 * ```ts
 * bytesEqual(Uint8Array.of(1, 2), Uint8Array.of(1, 2)); // true
 * bytesEqual(Uint8Array.of(1, 2), Uint8Array.of(1, 2, 0)); // false
 * ```
 */
export function bytesEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

/**
 * What an enqueue comes to: FRESH when no job holds the key (the descriptors are then not looked at), DUPLICATE when the
 * job that holds it asks for the same, CONFLICT when it asks for something else.
 *
 * @example
 * ```ts
 * idempotencyEnqueueOutcome(true, existing, candidate) === ENQUEUE.CONFLICT; // refuse, and change nothing
 * ```
 */
export function idempotencyEnqueueOutcome(
  keyExists: boolean,
  existingDescriptor: Uint8Array,
  candidateDescriptor: Uint8Array,
): EnqueueOutcome {
  if (!keyExists) return ENQUEUE.FRESH;
  return bytesEqual(existingDescriptor, candidateDescriptor) ? ENQUEUE.DUPLICATE : ENQUEUE.CONFLICT;
}

/**
 * Whether a queued payload was written under the schema its handler has now. A payload that was not is refused rather
 * than decoded on the chance that it fits.
 *
 * @example
 * ```ts
 * payloadSchemaIsCompatible(handlerDescriptor, storedDescriptor);
 * ```
 */
export function payloadSchemaIsCompatible(expected: Uint8Array, actual: Uint8Array): boolean {
  return bytesEqual(expected, actual);
}
