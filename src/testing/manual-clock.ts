/** A clock that only its owner moves: a test that has to wait for nothing cannot be late, whatever machine it runs on. */
import { isTick } from '../core/index.ts';

/** Time as a value: it stands still until it is set or advanced. */
export interface ManualClock {
  /** The tick it stands at. */
  now(): number;
  /** Moves it to this tick, also backwards. Throws a RangeError for what is no tick, and then stands where it stood. */
  set(tick: number): void;
  /** Moves it forward by this many milliseconds. Throws a RangeError for what is no tick. */
  advance(ms: number): void;
}

/**
 * A clock that stands at `start` until it is moved.
 *
 * @example
 * ```ts
 * const clock = manualClock(1_000);
 * clock.advance(500);
 * clock.now(); // 1500
 * ```
 */
export function manualClock(start = 0): ManualClock {
  let tick = asTick(start);
  return {
    now: () => tick,
    set(to) {
      tick = asTick(to);
    },
    advance(ms) {
      tick = asTick(tick + asTick(ms));
    },
  };
}

function asTick(value: number): number {
  if (!isTick(value)) throw new RangeError('a tick is a whole number of milliseconds from 0 to 2^53-1');
  return value;
}
