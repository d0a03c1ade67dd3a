/**
 * Ticks and counters are whole numbers from 0 to 2^53-1, and outside that domain (negative, fractional, NaN, infinite, an
 * interval of 0, a result past the end) no procedure of core wraps, rounds or throws: a number is answered by
 * `tick_overflow`, a boolean by the answer that grants nothing (not current, expired, not due, exhausted, dead-lettered,
 * unknown), and a state by the sink the procedure names.
 */

/** The last tick, 2^53-1: the largest whole number a double tells apart from its neighbours. */
export const TICK_MAX: number = Number.MAX_SAFE_INTEGER;

/**
 * Whether a value is a whole number from 0 to 2^53-1: the domain of ticks (milliseconds) and of every counter, such as
 * attempts, generations, revisions and occurrences.
 *
 * @example
 * ```ts
 * isTick(0); // true
 * isTick(2 ** 53); // false: 2^53 and 2^53+1 are the same double
 * ```
 */
export function isTick(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/**
 * Whether all values are in the domain of ticks and counters.
 *
 * @example
 * ```ts
 * areTicks(5, 1_000); // true
 * areTicks(5, Number.NaN); // false
 * ```
 */
export function areTicks(...values: readonly unknown[]): boolean {
  return values.every(isTick);
}

/**
 * The tick `delta` milliseconds after `tick`, or `tick_overflow` when an argument is no tick or the sum lies past
 * 2^53-1. Time is never reckoned backwards, so a negative `delta` is out of the domain.
 *
 * @example
 * ```ts
 * addTicks(1_000, 500); // 1500
 * addTicks(TICK_MAX, 1); // 'tick_overflow'
 * ```
 */
export function addTicks(tick: number, delta: number): number | 'tick_overflow' {
  // The sum itself may be past what a double holds exactly, so the room left is compared instead.
  if (!areTicks(tick, delta) || delta > TICK_MAX - tick) return 'tick_overflow';
  return tick + delta;
}
