/** What a handler may return or throw to say how its attempt ended; anything else it throws is judged by its contract. */
import { isTick, limits, type Outcome as OutcomeName } from '../core/index.ts';
import { InvalidInputError } from '../store/errors.ts';
import { reasonOf } from './reason.ts';

/** An outcome a handler names. It can be returned, and thrown from anywhere below it. */
export class Outcome extends Error {
  readonly outcome: Exclude<OutcomeName, 'succeeded' | 'refused'>;
  /** retryable: a delay in place of the backoff. */
  readonly delayMs: number | null;
  /** snoozed: the tick to start at. */
  readonly until: number | null;

  constructor(
    outcome: Exclude<OutcomeName, 'succeeded' | 'refused'>,
    reason: string,
    when: { readonly delayMs?: number; readonly until?: number } = {},
  ) {
    // Callers without types give anything; the reason is made readable, and never refused.
    super(typeof reason === 'string' ? reason : reasonOf(reason));
    this.name = 'Outcome';
    this.outcome = outcome;
    this.delayMs = bounded('delayMs', when.delayMs, limits.backoffMsMax);
    this.until = bounded('until', when.until, limits.tickMax);
  }
}

/** Refused where it is made: carried to the store it would take the settlements that travel with it along. */
function bounded(field: string, value: number | undefined, max: number): number | null {
  if (value === undefined || value === null) return null;
  if (isTick(value) && value <= max) return value;
  throw new InvalidInputError(field, `must be a whole number of milliseconds from 0 to ${max}`);
}

/** Whether a value is an outcome; a proxy whose traps throw is none. */
export function isOutcome(value: unknown): value is Outcome {
  try {
    return value instanceof Outcome;
  } catch {
    return false;
  }
}

/**
 * Makes outcomes. Throws `InvalidInputError` for a delay above 366 days, or a delay or tick that is none.
 *
 * @example
 * ```ts
 * return outcome.permanent('card closed');
 * throw outcome.retryable('rate limited', { delayMs: 5_000 });
 * ```
 */
export const outcome = {
  /** Try again after the backoff, or after `delayMs`. */
  retryable: (reason: string, when: { readonly delayMs?: number } = {}): Outcome =>
    new Outcome('retryable', reason, when),
  /** It did not happen and trying again is pointless. */
  permanent: (reason: string): Outcome => new Outcome('permanent', reason),
  /** Nobody can say whether it happened. */
  uncertain: (reason: string): Outcome => new Outcome('uncertain', reason),
  /** Start again at `until` (ticks since the epoch), at once when that has passed; the attempt is given back. */
  snoozed: (until: number, reason = ''): Outcome => new Outcome('snoozed', reason, { until }),
  /** Stopped at a safe point, having done nothing that must not be repeated; the attempt is given back. */
  interrupted: (reason = ''): Outcome => new Outcome('interrupted', reason),
} as const;
