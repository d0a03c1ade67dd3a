/** Lanes and the order of claims: the rule every backend's SQL must equal, in a form that can be read at a glance. */
import type { Job } from './job.ts';
import { limits } from './limits.ts';

/** The lane of a job as a key, null for a job that waits for nobody. A lane is a queue and an ordering key. */
export function laneOf(queue: string, orderingKey: string | null): string | null {
  return orderingKey === null ? null : JSON.stringify([queue, orderingKey]);
}

/** Whether a granted token takes the oldest due job whatever its priority, so that nothing starves. */
export function tokenTakesOldest(token: number): boolean {
  return token % limits.oldestFirstEvery === 0;
}

/** Ids of the lane heads among unresolved jobs: the oldest of each lane, and every job without a lane. */
export function laneHeads(unresolved: Iterable<Job>): ReadonlySet<number> {
  const heads = new Set<number>();
  const oldest = new Map<string, number>();
  for (const job of unresolved) {
    const lane = laneOf(job.submission.queue, job.submission.orderingKey);
    if (lane === null) heads.add(job.id);
    else oldest.set(lane, Math.min(oldest.get(lane) ?? job.id, job.id));
  }
  for (const id of oldest.values()) heads.add(id);
  return heads;
}

/** Higher priority first, then admission order. */
export function compareForClaim(a: Job, b: Job): number {
  return b.submission.priority - a.submission.priority || a.id - b.id;
}

/**
 * The job a token takes among those that may be claimed now, or null when there is none.
 *
 * @example
 * ```ts
 * pickForToken(claimable, 17)?.id; // highest priority, then oldest
 * pickForToken(claimable, 32)?.id; // oldest, whatever its priority
 * ```
 */
export function pickForToken(claimable: Iterable<Job>, token: number): Job | null {
  const oldestFirst = tokenTakesOldest(token);
  let best: Job | null = null;
  for (const job of claimable) {
    const better = best === null || (oldestFirst ? job.id < best.id : compareForClaim(job, best) < 0);
    if (better) best = job;
  }
  return best;
}
