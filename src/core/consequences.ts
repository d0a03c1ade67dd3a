/** What must happen elsewhere in the same commit when a job moves: internal jobs to enqueue or to cancel. */
import { compensationIsRequired } from './cancellation.ts';
import { everRan, type Job } from './job.ts';
import { STATE, stateAwaitsWorker } from './states.ts';
import { addTicks } from './ticks.ts';

/** Ask the reconciler about the attempt of `token`, at the earliest at `startAt`. */
export interface AskReconcile {
  readonly ask: 'enqueue_reconcile';
  readonly token: number;
  readonly startAt: number;
}

/** Compensate the attempts up to `token`. */
export interface AskCompensate {
  readonly ask: 'enqueue_compensate';
  readonly token: number;
  readonly startAt: number;
}

/** The attempt of `token` is decided: a reconcile job still asking about it is cancelled. */
export interface AskCancelReconcile {
  readonly ask: 'cancel_reconcile';
  readonly token: number;
}

export type Ask = AskReconcile | AskCompensate | AskCancelReconcile;

/**
 * Consequences of a move from `before` to `after`, reckoned over the whole decision: a loss that a late report decided
 * in the same commit asks nobody. Internal jobs have none of their own.
 */
export function consequencesOf(before: Job, after: Job, now: number): readonly Ask[] {
  const { reconciles, compensates, internal, reconcileAfterMs } = after.submission;
  if (internal !== null || before === after) return [];
  const asks: Ask[] = [];
  const { token } = after;
  const wasUncertain = before.state === STATE.UNCERTAIN;
  const isUncertain = after.state === STATE.UNCERTAIN;
  if (reconciles && wasUncertain && !isUncertain) asks.push({ ask: 'cancel_reconcile', token });
  if (reconciles && !wasUncertain && isUncertain) {
    const startAt = addTicks(now, reconcileAfterMs);
    // Past the end of time nobody can be asked: the job stays with a person.
    if (startAt !== 'tick_overflow') asks.push({ ask: 'enqueue_reconcile', token, startAt });
  }
  const ended = before.endedAt === null && after.endedAt !== null;
  if (compensates && ended && compensationIsRequired(everRan(after), after.state)) {
    asks.push({ ask: 'enqueue_compensate', token, startAt: now });
  }
  return asks;
}

/**
 * What a person must look at, or null: an UNCERTAIN job, one that ended with its outcome unknown, a compensation that is
 * required and has no hook, or a job that waits because no payload upgrade reaches the workers' revision.
 */
export function needsYou(
  job: Job,
): 'uncertain' | 'outcome_unknown' | 'compensation_required' | 'stranded' | null {
  if (job.state === STATE.UNCERTAIN) return 'uncertain';
  if (job.outcomeUnknown) return 'outcome_unknown';
  const required = compensationIsRequired(everRan(job), job.state) && job.submission.internal === null;
  if (required && !job.submission.compensates) return 'compensation_required';
  return stateAwaitsWorker(job.state) && job.cause === 'upgrade_refused' ? 'stranded' : null;
}
