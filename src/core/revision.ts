/** Whether a worker knows the revision a job is bound to: a job from a newer deploy is left alone, never misread. */
import { areTicks } from './ticks.ts';

/**
 * Whether a job bound to revision `bound` can be run by who is at revision `current`: revisions count up from 1 and none
 * is ever taken back, so all from 1 to `current` are known. Revision 0 is none. False for anything but whole numbers
 * from 0 to 2^53-1.
 *
 * @example
 * ```ts
 * revisionIsKnown(2, 3); // true: an older job
 * revisionIsKnown(4, 3); // false: enqueued by a newer deploy
 * ```
 */
export function revisionIsKnown(bound: number, current: number): boolean {
  return areTicks(bound, current) && bound >= 1 && bound <= current;
}

/**
 * Whether the job must be refused for its revision: exactly when the revision is not known.
 *
 * @example
 * ```ts
 * revisionRequiresRefusal(4, 3); // true
 * ```
 */
export function revisionRequiresRefusal(bound: number, current: number): boolean {
  return !revisionIsKnown(bound, current);
}
