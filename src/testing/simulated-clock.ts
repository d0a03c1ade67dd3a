/** A clock that moves timers with it: a year passes in a moment, and in the same order every time. */
import { isTick } from '../core/index.ts';
import type { Time } from '../runtime/clock.ts';

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly call: () => void;
}

/** Time that only `advance` moves. */
export interface SimulatedClock extends Time {
  /** Moves on by `ms`, calling each timer at its own time, and lets what they started settle before going on. */
  advance(ms: number): Promise<void>;
  /** Lets everything that is under way settle, without moving time. */
  settle(): Promise<void>;
  /** Puts the wall clock elsewhere, as an operator might; timers go by the monotonic one and do not notice. */
  setWall(tick: number): void;
  /** Lets time pass without calling a timer, as a handler does that keeps the event loop for itself. */
  block(ms: number): void;
}

/**
 * A simulated clock that reads `startAt` first.
 *
 * @example
 * ```ts
 * const time = simulatedClock();
 * const custody = await openCustody('memory:', { time });
 * await time.advance(30_000);
 * ```
 */
export function simulatedClock(startAt = 1_000_000): SimulatedClock {
  if (!isTick(startAt)) throw new RangeError('a clock starts at a whole number of milliseconds');
  let monotonic = 0;
  let wallOffset = startAt;
  let order = 0;
  const timers = new Set<Timer>();
  const nextDue = (until: number): Timer | null => {
    let next: Timer | null = null;
    for (const timer of timers) {
      if (timer.at > until) continue;
      if (next === null || timer.at < next.at || (timer.at === next.at && timer.order < next.order))
        next = timer;
    }
    return next;
  };
  return {
    now: () => Math.floor(monotonic + wallOffset),
    monotonic: () => monotonic,
    after(waitMs, call) {
      order += 1;
      const timer: Timer = { at: monotonic + Math.max(0, waitMs), order, call };
      timers.add(timer);
      return () => {
        timers.delete(timer);
      };
    },
    async advance(ms) {
      const until = monotonic + ms;
      await settleAll();
      for (let timer = nextDue(until); timer !== null; timer = nextDue(until)) {
        timers.delete(timer);
        monotonic = Math.max(monotonic, timer.at);
        timer.call();
        await settleAll();
      }
      monotonic = Math.max(monotonic, until);
      await settleAll();
    },
    settle: settleAll,
    setWall(tick) {
      wallOffset = tick - monotonic;
    },
    block(ms) {
      monotonic += ms;
    },
  };
}

/** Turns of the event loop after which stores, which answer within a few, have answered. */
const TURNS = 8;

async function settleAll(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) {
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
}
