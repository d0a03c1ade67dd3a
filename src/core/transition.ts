/** The moves all decisions share: where a job lands when it waits again, succeeds or ends, whatever led there. */
import type { Cause, Job } from './job.ts';
import { scheduleCatchUpNextRun, scheduleRecurrenceIsExhausted } from './schedule.ts';
import { STATE, type State, stateIsTerminal } from './states.ts';

/** The state a move ends in, why, and when what follows starts. */
export interface Landing {
  readonly to: State;
  readonly cause: Cause;
  readonly startAt: number | null;
}

/** A fresh occurrence carries nothing over but identity, the last token and what was answered under it. */
const FRESH_OCCURRENCE = {
  attempt: 0,
  delivery: 0,
  runs: 0,
  openSteps: [],
  requiredEffectCommitted: false,
} as const;

/** Whether no attempt may start at `tick` or later. */
export function isPastDeadline(job: Job, tick: number): boolean {
  return job.submission.deadline !== null && tick >= job.submission.deadline;
}

/**
 * Where a job lands that would wait again. Deliveries bound loops of every kind, and a requested cancellation sticks:
 * both are looked at here and nowhere else, so no way back into waiting can forget them.
 */
export function landWaiting(job: Job, to: State, cause: Cause, startAt: number): Landing {
  if (job.delivery >= job.submission.maxDeliveries) {
    return { to: STATE.DEAD_LETTERED, cause: 'deliveries_exhausted', startAt: null };
  }
  if (job.cancelRequested) return { to: STATE.CANCELLED, cause: 'cancelled', startAt: null };
  return { to, cause, startAt };
}

/** Where a start at `startAt` lands that must lie before the deadline. */
export function landScheduled(job: Job, cause: Cause, startAt: number): Landing {
  if (isPastDeadline(job, startAt)) {
    return { to: STATE.DEAD_LETTERED, cause: 'retry_after_deadline', startAt: null };
  }
  return landWaiting(job, STATE.SCHEDULED, cause, startAt);
}

/**
 * Where success lands: SUCCEEDED, or SCHEDULED for the next occurrence. A requested cancellation ends a recurrence and
 * leaves the success standing; a slot at or past the deadline ends it too.
 */
export function landSucceeded(job: Job, cause: Cause, now: number): Landing | 'tick_overflow' {
  const done: Landing = { to: STATE.SUCCEEDED, cause, startAt: null };
  const recurrence = job.submission.recurrence;
  if (recurrence === null || job.slotAt === null || job.cancelRequested) return done;
  if (scheduleRecurrenceIsExhausted(job.occurrence + 1, recurrence.maxOccurrences)) return done;
  const next = scheduleCatchUpNextRun(now, job.slotAt, recurrence.intervalMs, recurrence.maxCatchUp);
  if (next === 'tick_overflow') return next;
  // A slot that was missed may lie before the deadline, and the success be decided after it.
  if (isPastDeadline(job, Math.max(next, now))) return done;
  return { to: STATE.SCHEDULED, cause: 'recurrence', startAt: next };
}

/** The job after a move that ends its lease, if it held one. */
export function land(job: Job, now: number, landing: Landing): Job {
  const landed: Job = {
    ...job,
    state: landing.to,
    version: job.version + 1,
    tick: now,
    lease: null,
    cause: landing.cause,
    startAt: landing.startAt ?? job.startAt,
    testified: null,
    testimonies: 0,
    endedAt: stateIsTerminal(landing.to) ? now : null,
  };
  if (landing.cause !== 'recurrence') return landed;
  return { ...landed, ...FRESH_OCCURRENCE, occurrence: job.occurrence + 1, slotAt: landing.startAt };
}
