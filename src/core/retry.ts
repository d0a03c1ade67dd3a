/** What follows an attempt: attempts and waits stay bounded whatever a handler reports or a counter has become. */
import { STATE, type State } from './states.ts';
import { areTicks, isTick } from './ticks.ts';

/** Outcome kinds of an attempt. */
export const OUTCOME = { SUCCESS: 0, RETRYABLE: 1, PERMANENT: 2, UNCERTAIN: 3 } as const;

/** An outcome kind, 0 to 3. */
export type OutcomeKind = (typeof OUTCOME)[keyof typeof OUTCOME];

/** 2^53 times any base above 0 is past every cap, so no more doublings need to be told apart. */
const DOUBLINGS_MAX = 53;

/**
 * Whether a value is an outcome kind.
 *
 * @example
 * ```ts
 * outcomeKindIsValid(OUTCOME.UNCERTAIN); // true
 * outcomeKindIsValid(4); // false
 * ```
 */
export function outcomeKindIsValid(kind: unknown): kind is OutcomeKind {
  return isTick(kind) && kind <= OUTCOME.UNCERTAIN;
}

/**
 * Whether attempt number `attempt` may take place under a ceiling of `maxAttempts`, the last one included. False for
 * anything but whole numbers from 0 to 2^53-1.
 *
 * @example
 * ```ts
 * attemptIsWithinCeiling(5, 5); // true
 * attemptIsWithinCeiling(6, 5); // false
 * ```
 */
export function attemptIsWithinCeiling(attempt: number, maxAttempts: number): boolean {
  return areTicks(attempt, maxAttempts) && attempt <= maxAttempts;
}

/**
 * Whether, after `attempt` attempts, none is left under a ceiling of `maxAttempts`. True for anything but whole numbers
 * from 0 to 2^53-1: a counter that cannot be trusted must not buy another attempt.
 *
 * @example
 * ```ts
 * retryShouldDeadLetter(4, 5); // false
 * retryShouldDeadLetter(5, 5); // true
 * ```
 */
export function retryShouldDeadLetter(attempt: number, maxAttempts: number): boolean {
  return !areTicks(attempt, maxAttempts) || attempt >= maxAttempts;
}

/**
 * The state an attempt's outcome leads to, `attempt` being the number of attempts made so far, this one included. An
 * uncertain outcome is UNCERTAIN at any count: it is neither run again nor given up here. An invalid kind is a permanent
 * failure. Only a retryable outcome looks at the counters, and dead-letters when they are out of their domain.
 *
 * @example
 * ```ts
 * retryNextStateAfterOutcome(OUTCOME.RETRYABLE, 4, 5); // STATE.RETRYABLE_FAILURE
 * retryNextStateAfterOutcome(OUTCOME.RETRYABLE, 5, 5); // STATE.DEAD_LETTERED
 * retryNextStateAfterOutcome(OUTCOME.UNCERTAIN, 5, 5); // STATE.UNCERTAIN
 * ```
 */
export function retryNextStateAfterOutcome(kind: number, attempt: number, maxAttempts: number): State {
  switch (kind) {
    case OUTCOME.SUCCESS:
      return STATE.SUCCEEDED;
    case OUTCOME.RETRYABLE:
      return retryShouldDeadLetter(attempt, maxAttempts) ? STATE.DEAD_LETTERED : STATE.RETRYABLE_FAILURE;
    case OUTCOME.UNCERTAIN:
      return STATE.UNCERTAIN;
    default:
      return STATE.PERMANENT_FAILURE;
  }
}

/**
 * Ticks to wait before the next attempt: `baseTicks` doubled `attempt` times, and at most `maxTicks`. Who wants the first
 * retry to wait the base asks with the number of retries made so far. `tick_overflow` for anything but whole numbers from
 * 0 to 2^53-1.
 *
 * @example
 * ```ts
 * retryBackoffTicks(3, 1_000, 300_000); // 8000
 * retryBackoffTicks(1_000_000, 1_000, 300_000); // 300000
 * ```
 */
export function retryBackoffTicks(
  attempt: number,
  baseTicks: number,
  maxTicks: number,
): number | 'tick_overflow' {
  if (!areTicks(attempt, baseTicks, maxTicks)) return 'tick_overflow';
  const factor = 2 ** Math.min(attempt, DOUBLINGS_MAX);
  // Dividing by a power of two is exact, so the cap is compared without forming a product that may not be.
  return baseTicks > Math.floor(maxTicks / factor) ? maxTicks : baseTicks * factor;
}
