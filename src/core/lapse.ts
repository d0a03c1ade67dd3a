/** What the passing of time does to a job: deadline first, then lease; it guesses nothing about a lost attempt. */
import type { ClockCorrectedFact, LapsedFact } from './facts.ts';
import type { Cause, Job } from './job.ts';
import { leaseIsExpired } from './lease.ts';
import { retryShouldDeadLetter } from './retry.ts';
import { STATE, stateIsTerminal } from './states.ts';
import { isTick } from './ticks.ts';
import { type Landing, land, landWaiting } from './transition.ts';

/** A job after time was looked at, and what has to be recorded of that. */
export interface Lapse {
  readonly job: Job;
  readonly facts: readonly (LapsedFact | ClockCorrectedFact)[];
}

/** Causes whose start was reckoned from a reading of the clock, and so moves with a correction of it. */
const RELATIVE_STARTS: ReadonlySet<Cause | null> = new Set<Cause>([
  'retry_scheduled',
  'policy_retry',
  'upgrade_refused',
]);

/**
 * The job as it is at `now`: lapsed if its deadline or its lease is reached, equality included. UNCERTAIN and terminal
 * jobs never lapse. When the clock was followed back behind the job's last tick, that is recorded first, and what was
 * reckoned from the wrong reading (a lease, the start of a retry) is cut to its length from `now`. A `now` that is no tick
 * tells nothing, and nothing lapses.
 *
 * @example
 * ```ts
 * const { job: current, facts } = lapse(job, now); // persist both, also when the command that came is refused
 * ```
 */
export function lapse(job: Job, now: number): Lapse {
  if (stateIsTerminal(job.state) || !isTick(now)) return { job, facts: [] };
  const facts: (LapsedFact | ClockCorrectedFact)[] = [];
  let current = job;
  if (now < current.tick) {
    const corrected = correctClock(current, now);
    facts.push(corrected.fact);
    current = corrected.job;
  }
  const landing = lapsedTo(current, now);
  if (landing === null) return { job: current, facts };
  facts.push({
    type: 'lapsed',
    tick: now,
    expiresAt: current.lease?.expiresAt ?? null,
    token: current.token,
    by: landing.by,
    at: landing.at,
    cause: landing.cause,
    to: landing.to,
  });
  const lapsed = land(current, now, landing);
  const lost = current.state === STATE.RUNNING && stateIsTerminal(landing.to);
  return { job: { ...lapsed, outcomeUnknown: lost }, facts };
}

interface LapseLanding extends Landing {
  readonly by: 'deadline' | 'lease';
  readonly at: number;
}

function lapsedTo(job: Job, now: number): LapseLanding | null {
  if (job.state === STATE.UNCERTAIN) return null;
  const { deadline } = job.submission;
  if (deadline !== null && now >= deadline) {
    const to = job.state === STATE.RUNNING && !job.idempotent ? STATE.UNCERTAIN : STATE.DEAD_LETTERED;
    return { by: 'deadline', at: deadline, to, cause: 'deadline_passed', startAt: null };
  }
  if (job.lease === null || !leaseIsExpired(now, job.lease.expiresAt)) return null;
  return { by: 'lease', at: job.lease.expiresAt, ...leaseLostTo(job, now) };
}

function leaseLostTo(job: Job, now: number): Landing {
  if (job.state === STATE.RUNNING && !job.idempotent) {
    return { to: STATE.UNCERTAIN, cause: 'lease_expired', startAt: null };
  }
  if (job.state === STATE.RUNNING && retryShouldDeadLetter(job.attempt, job.submission.maxAttempts)) {
    return { to: STATE.DEAD_LETTERED, cause: 'lease_expired', startAt: null };
  }
  return landWaiting(job, STATE.PENDING, 'lease_expired', now);
}

/** The job with its lease no longer than its own length from `now`: all that a phantom future may leave of it. */
export function cutLease(job: Job, now: number): Job {
  if (job.lease === null) return job;
  return {
    ...job,
    lease: { ...job.lease, expiresAt: Math.min(job.lease.expiresAt, now + job.lease.lengthMs) },
  };
}

function correctClock(job: Job, now: number): { job: Job; fact: ClockCorrectedFact } {
  const { lease } = cutLease(job, now);
  const relative = job.state === STATE.SCHEDULED && RELATIVE_STARTS.has(job.cause);
  const startAt = relative ? job.startAt - (job.tick - now) : job.startAt;
  return {
    job: { ...job, version: job.version + 1, tick: now, lease, startAt },
    fact: {
      type: 'clock_corrected',
      tick: now,
      expiresAt: lease?.expiresAt ?? null,
      from: job.tick,
      startAt,
      to: job.state,
    },
  };
}
