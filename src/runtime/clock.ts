/** The one source of real time and timers: everything else is given its clock, so that a simulated one can move it. */
import { performance } from 'node:perf_hooks';

/** Time as the runtime needs it. */
export interface Time {
  /** Milliseconds since the Unix epoch, whole. */
  now(): number;
  /** Milliseconds that only rise, whatever is done to the wall clock; they may stop while the machine sleeps. */
  monotonic(): number;
  /** Calls `call` after `waitMs`, however long that is; the answer takes it back. Keeps no process alive when `idle`. */
  after(waitMs: number, call: () => void, options?: { readonly idle?: boolean }): () => void;
}

/** The longest wait a timer holds; a longer one would fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Milliseconds since the Unix epoch. */
export function systemClock(): number {
  return Date.now();
}

/** The machine's time. */
export const systemTime: Time = {
  now: systemClock,
  monotonic: () => performance.now(),
  after(waitMs, call, options = {}) {
    let timer: NodeJS.Timeout;
    let left = waitMs;
    const wait = (): void => {
      const partMs = Math.min(left, TIMER_MS_MAX);
      left -= partMs;
      timer = setTimeout(() => (left > 0 ? wait() : call()), partMs);
      if (options.idle === true) timer.unref();
    };
    wait();
    return () => clearTimeout(timer);
  },
};
