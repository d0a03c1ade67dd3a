/** How an attempt nobody can vouch for is resolved: without a decision it stays UNCERTAIN, and it is never run again unasked. */
import { retryShouldDeadLetter } from './retry.ts';
import { STATE, type State } from './states.ts';

/** Decisions about an UNCERTAIN attempt. */
export const DECISION = { SUCCEEDED: 0, FAILED: 1, RETRY: 2 } as const;

/** A decision, 0 to 2. */
export type DecisionKind = (typeof DECISION)[keyof typeof DECISION];

/**
 * Whether an attempt that may have taken effect may be followed by another: the handler is declared idempotent and
 * attempts are left. False when a counter is not a whole number from 0 to 2^53-1.
 *
 * @example
 * ```ts
 * uncertainRetryIsPermitted(true, 4, 5); // true
 * uncertainRetryIsPermitted(false, 1, 5); // false: it might take effect twice
 * ```
 */
export function uncertainRetryIsPermitted(
  isIdempotent: boolean,
  attempt: number,
  maxAttempts: number,
): boolean {
  return isIdempotent && !retryShouldDeadLetter(attempt, maxAttempts);
}

/**
 * The state a decision leads to from UNCERTAIN: SUCCEEDED, PERMANENT_FAILURE, or RETRYABLE_FAILURE where a retry is
 * permitted. A retry that is not permitted, and a decision that is none, leave it UNCERTAIN: neither run again nor
 * buried, it waits for one of the first two.
 *
 * @example
 * ```ts
 * uncertainReconcile(DECISION.RETRY, true, 4, 5); // STATE.RETRYABLE_FAILURE
 * uncertainReconcile(DECISION.RETRY, false, 4, 5); // STATE.UNCERTAIN
 * ```
 */
export function uncertainReconcile(
  decision: number,
  isIdempotent: boolean,
  attempt: number,
  maxAttempts: number,
): State {
  switch (decision) {
    case DECISION.SUCCEEDED:
      return STATE.SUCCEEDED;
    case DECISION.FAILED:
      return STATE.PERMANENT_FAILURE;
    case DECISION.RETRY:
      return uncertainRetryIsPermitted(isIdempotent, attempt, maxAttempts)
        ? STATE.RETRYABLE_FAILURE
        : STATE.UNCERTAIN;
    default:
      return STATE.UNCERTAIN;
  }
}
