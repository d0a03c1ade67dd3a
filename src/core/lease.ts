/** Who may act on a job: a holder whose lease is superseded or past its end, equality included, may do nothing at all. */
import { STATE, stateHoldsLease } from './states.ts';
import { areTicks } from './ticks.ts';

/**
 * Whether a lease still gives custody at `nowTick`: it is of the job's latest generation, and its deadline is still
 * ahead. A lease that ends exactly now has ended. Generations and ticks are whole numbers from 0 to 2^53-1; anything
 * else is not current.
 *
 * @example
 * ```ts
 * leaseIsCurrent(7, 7, 99, 100); // true
 * leaseIsCurrent(7, 7, 100, 100); // false: over
 * leaseIsCurrent(6, 7, 99, 100); // false: another worker holds the job
 * ```
 */
export function leaseIsCurrent(
  leaseGeneration: number,
  jobGeneration: number,
  nowTick: number,
  deadlineTick: number,
): boolean {
  return (
    areTicks(leaseGeneration, jobGeneration) &&
    leaseGeneration === jobGeneration &&
    !leaseIsExpired(nowTick, deadlineTick)
  );
}

/**
 * Whether a lease is over at `nowTick`, also when it ends exactly then. An argument that is no tick counts as over.
 *
 * @example
 * ```ts
 * leaseIsExpired(99, 100); // false
 * leaseIsExpired(100, 100); // true
 * ```
 */
export function leaseIsExpired(nowTick: number, deadlineTick: number): boolean {
  return !areTicks(nowTick, deadlineTick) || nowTick >= deadlineTick;
}

/**
 * Whether a job may be claimed: it is PENDING, or SCHEDULED and due.
 *
 * @example
 * ```ts
 * claimIsLegal(STATE.SCHEDULED, scheduleIsDue(now, startAt));
 * ```
 */
export function claimIsLegal(state: number, isDue: boolean): boolean {
  return state === STATE.PENDING || (state === STATE.SCHEDULED && isDue);
}

/**
 * Whether the holder of a lease may begin to run the job: it is LEASED and the lease is current.
 *
 * @example
 * ```ts
 * beginExecutionIsLegal(STATE.LEASED, 7, 7, 99, 100); // true
 * beginExecutionIsLegal(STATE.RUNNING, 7, 7, 99, 100); // false: begun already
 * ```
 */
export function beginExecutionIsLegal(
  state: number,
  leaseGeneration: number,
  jobGeneration: number,
  nowTick: number,
  deadlineTick: number,
): boolean {
  return state === STATE.LEASED && leaseIsCurrent(leaseGeneration, jobGeneration, nowTick, deadlineTick);
}

/**
 * Whether the holder of a lease may extend it: the job is LEASED or RUNNING and the lease is current. A lease that is
 * over cannot be revived, because the job may already be promised to someone else.
 *
 * @example
 * ```ts
 * heartbeatIsLegal(STATE.RUNNING, 7, 7, 99, 100); // true
 * heartbeatIsLegal(STATE.RUNNING, 7, 7, 100, 100); // false: too late
 * ```
 */
export function heartbeatIsLegal(
  state: number,
  leaseGeneration: number,
  jobGeneration: number,
  nowTick: number,
  deadlineTick: number,
): boolean {
  return stateHoldsLease(state) && leaseIsCurrent(leaseGeneration, jobGeneration, nowTick, deadlineTick);
}

/**
 * Whether the holder of a lease may report an outcome: the job is RUNNING and the lease is current.
 *
 * @example
 * ```ts
 * completionIsLegal(STATE.RUNNING, 7, 7, 99, 100); // true
 * completionIsLegal(STATE.LEASED, 7, 7, 99, 100); // false: nothing ran
 * ```
 */
export function completionIsLegal(
  state: number,
  leaseGeneration: number,
  jobGeneration: number,
  nowTick: number,
  deadlineTick: number,
): boolean {
  return state === STATE.RUNNING && leaseIsCurrent(leaseGeneration, jobGeneration, nowTick, deadlineTick);
}
