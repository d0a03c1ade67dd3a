/** What a handler may return or throw to say how its attempt ended; anything else it throws is judged by its contract. */
import type { Outcome as OutcomeName } from '../core/index.ts';

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
    super(reason);
    this.name = 'Outcome';
    this.outcome = outcome;
    this.delayMs = when.delayMs ?? null;
    this.until = when.until ?? null;
  }
}

/**
 * Makes outcomes.
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
  /** Start again at `until` (ticks since the epoch); the attempt is given back. */
  snoozed: (until: number, reason = ''): Outcome => new Outcome('snoozed', reason, { until }),
  /** Stopped at a safe point, having done nothing that must not be repeated; the attempt is given back. */
  interrupted: (reason = ''): Outcome => new Outcome('interrupted', reason),
} as const;
