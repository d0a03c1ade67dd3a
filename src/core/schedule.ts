/** When a job is due and when it recurs: a clock that stood still for long causes one run and no burst of missed ones. */
import { addTicks, areTicks, TICK_MAX } from './ticks.ts';

/**
 * Whether a job with this start may start at `nowTick`, also when both are equal. False for anything but ticks.
 *
 * @example
 * ```ts
 * scheduleIsDue(100, 100); // true
 * scheduleIsDue(99, 100); // false
 * ```
 */
export function scheduleIsDue(nowTick: number, nextRunTick: number): boolean {
  return areTicks(nowTick, nextRunTick) && nowTick >= nextRunTick;
}

/**
 * How many whole intervals have passed since the job was due, 0 when it is not due yet. `intervalTick` is at least 1;
 * `tick_overflow` for anything but ticks.
 *
 * @example
 * ```ts
 * scheduleMissedWindows(135, 100, 10); // 3
 * ```
 */
export function scheduleMissedWindows(
  nowTick: number,
  nextRunTick: number,
  intervalTick: number,
): number | 'tick_overflow' {
  if (!areTicks(nowTick, nextRunTick, intervalTick) || intervalTick === 0) return 'tick_overflow';
  return wholeIntervals(Math.max(0, nowTick - nextRunTick), intervalTick);
}

/**
 * The slot after the one that ran: missed slots are skipped, at most `maxCatchUp` of them in one step, so a job due many
 * slots ago runs once and not once for each. `intervalTick` is at least 1. `tick_overflow` for anything but ticks, and
 * when the slot lies past 2^53-1; once that holds for a `nowTick`, it holds for every later one.
 *
 * @example
 * ```ts
 * scheduleCatchUpNextRun(100, 100, 10, 100); // 110: on time
 * scheduleCatchUpNextRun(135, 100, 10, 100); // 140: 110, 120 and 130 are skipped
 * scheduleCatchUpNextRun(999, 100, 10, 2); // 130: two skipped, the rest in later steps
 * ```
 */
export function scheduleCatchUpNextRun(
  nowTick: number,
  nextRunTick: number,
  intervalTick: number,
  maxCatchUp: number,
): number | 'tick_overflow' {
  const missed = scheduleMissedWindows(nowTick, nextRunTick, intervalTick);
  if (missed === 'tick_overflow' || !areTicks(maxCatchUp)) return 'tick_overflow';
  const skipped = Math.min(missed, maxCatchUp);
  // The product may be past what a double holds exactly, so the intervals that still fit are counted instead.
  if (skipped >= wholeIntervals(TICK_MAX - nextRunTick, intervalTick)) return 'tick_overflow';
  return nextRunTick + intervalTick * (skipped + 1);
}

/**
 * Whether a recurring job has run as often as it may. True for anything but whole numbers from 0 to 2^53-1.
 *
 * @example
 * ```ts
 * scheduleRecurrenceIsExhausted(12, 12); // true
 * ```
 */
export function scheduleRecurrenceIsExhausted(occurrencesRun: number, maxOccurrences: number): boolean {
  return !areTicks(occurrencesRun, maxOccurrences) || occurrencesRun >= maxOccurrences;
}

/** Exact for all ticks: the remainder is, and so is a division that leaves none. */
function wholeIntervals(ticks: number, interval: number): number {
  return (ticks - (ticks % interval)) / interval;
}

/**
 * Whether the next slot of a recurrence could pass 2^53-1 for an attempt that is settled within a hundred years of
 * `nowTick`. Catching up never leads past the settlement by more than one interval, so the catch-up bound plays no part.
 */
export function recurrenceOverflows(slotTick: number, intervalTick: number, nowTick: number): boolean {
  const latest = addTicks(Math.max(slotTick, nowTick), HANDLER_HORIZON_MS);
  return latest === 'tick_overflow' || addTicks(latest, intervalTick) === 'tick_overflow';
}

/** A hundred years: no attempt lasts longer. */
const HANDLER_HORIZON_MS = 3_162_240_000_000;
