/** What an accepted report of an attempt does to its job; a report that may not settle is refused before it comes here. */
import type { SettleCommand } from './commands.ts';
import type { RetryDecidedFact, SettledFact } from './facts.ts';
import { hasUnsafeOpenStep, type Job, type Lease, lacksRequiredEffect } from './job.ts';
import { limits } from './limits.ts';
import type { Refusal } from './refusal.ts';
import { OUTCOME, retryBackoffTicks, retryNextStateAfterOutcome } from './retry.ts';
import { STATE } from './states.ts';
import { addTicks, isTick } from './ticks.ts';
import {
  isPastDeadline,
  type Landing,
  land,
  landScheduled,
  landSucceeded,
  landWaiting,
} from './transition.ts';
import { uncertainRetryIsPermitted } from './uncertainty.ts';

/** A job that was settled, and the facts of it in order. */
export interface Settled {
  readonly job: Job;
  readonly facts: readonly (SettledFact | RetryDecidedFact)[];
}

/** Settles a job whose lease is current under `command.token`; the caller has checked that. */
export function settle(job: Job, lease: Lease, command: SettleCommand, now: number): Settled | Refusal {
  const landing = landingOf(job, command, now);
  if (typeof landing === 'string') return landing;
  if (!isWithinBounds(command)) return 'tick_overflow';
  if (landing.to !== STATE.UNCERTAIN) return record(job, lease, command, now, landing);
  const start = retryStart(job, command, now);
  if (start === 'tick_overflow') return start;
  const settled = record(job, lease, command, now, landing);
  return retryIsDecided(settled.job, start) ? withPolicyRetry(settled, command, now, start) : settled;
}

function record(job: Job, lease: Lease, command: SettleCommand, now: number, landing: Landing): Settled {
  const fact: SettledFact = {
    type: 'settled',
    tick: now,
    expiresAt: lease.expiresAt,
    worker: lease.worker,
    token: command.token,
    outcome: command.outcome,
    digest: command.digest,
    delayMs: command.delayMs,
    jitterMs: command.jitterMs,
    until: command.until,
    neverCalled: command.neverCalled,
    byUpgrade: command.byUpgrade,
    cause: landing.cause,
    startAt: landing.startAt,
    to: landing.to,
  };
  const settled: Job = {
    ...givenBack(job, command, land(job, now, landing)),
    answered: { token: command.token, outcome: command.outcome, digest: command.digest },
  };
  return { job: settled, facts: [fact] };
}

function landingOf(job: Job, command: SettleCommand, now: number): Landing | Refusal {
  // A handler that left a mark was called: saying otherwise would hide what it may have done.
  if (command.outcome === 'interrupted' && command.neverCalled && job.marked) return 'wrong_state';
  if (command.outcome === 'interrupted') return landWaiting(job, STATE.PENDING, 'interrupted', now);
  if (job.state !== STATE.RUNNING) return 'wrong_state';
  if (command.outcome === 'refused' && job.marked) return 'wrong_state';
  switch (command.outcome) {
    case 'succeeded':
      return lacksRequiredEffect(job) ? 'effect_not_committed' : landSucceeded(job, 'reported', now);
    case 'retryable':
      return landRetryable(job, command, now);
    case 'permanent':
      return { to: STATE.PERMANENT_FAILURE, cause: 'reported', startAt: null };
    case 'uncertain':
      return { to: STATE.UNCERTAIN, cause: 'reported', startAt: null };
    case 'snoozed': {
      if (!isTick(command.until) || command.until <= now) return 'tick_overflow';
      return landScheduled(job, 'snoozed', command.until);
    }
    case 'refused': {
      if (!command.byUpgrade) return { to: STATE.PERMANENT_FAILURE, cause: 'payload_refused', startAt: null };
      const start = addTicks(now, job.submission.backoffMaxMs);
      return start === 'tick_overflow' ? start : landScheduled(job, 'upgrade_refused', start);
    }
  }
}

function landRetryable(job: Job, command: SettleCommand, now: number): Landing | Refusal {
  const start = retryStart(job, command, now);
  if (start === 'tick_overflow') return start;
  const next = retryNextStateAfterOutcome(OUTCOME.RETRYABLE, job.attempt, job.submission.maxAttempts);
  if (next === STATE.DEAD_LETTERED) return { to: next, cause: 'attempts_exhausted', startAt: null };
  return landScheduled(job, 'retry_scheduled', start);
}

/** The first retry waits the base: the procedure doubles once for each attempt before this one. */
function retryStart(job: Job, command: SettleCommand, now: number): number | 'tick_overflow' {
  const { backoffBaseMs, backoffMaxMs } = job.submission;
  const delayMs = command.delayMs ?? retryBackoffTicks(job.attempt - 1, backoffBaseMs, backoffMaxMs);
  return delayMs === 'tick_overflow' ? delayMs : addTicks(now, delayMs + command.jitterMs);
}

/** Every number of a report is recorded, also where its outcome has no use for it, so none may be out of its bound. */
function isWithinBounds({ delayMs, jitterMs, until }: SettleCommand): boolean {
  const delayIsGood = delayMs === null || (isTick(delayMs) && delayMs <= limits.backoffMsMax);
  const jitterIsGood = isTick(jitterMs) && jitterMs <= limits.jitterMsMax;
  return delayIsGood && jitterIsGood && (until === null || isTick(until));
}

/** An uncertain attempt runs again only where a retry is permitted and would start before the deadline. */
function retryIsDecided(job: Job, start: number): boolean {
  return (
    uncertainRetryIsPermitted(job.idempotent, job.attempt, job.submission.maxAttempts) &&
    job.delivery < job.submission.maxDeliveries &&
    !isPastDeadline(job, start) &&
    !hasUnsafeOpenStep(job)
  );
}

function withPolicyRetry(settled: Settled, command: SettleCommand, now: number, start: number): Settled {
  const landing = landWaiting(settled.job, STATE.SCHEDULED, 'policy_retry', start);
  const fact: RetryDecidedFact = {
    type: 'retry_decided',
    tick: now,
    expiresAt: null,
    token: command.token,
    cause: landing.cause,
    startAt: landing.startAt,
    to: landing.to,
  };
  return { job: land(settled.job, now, landing), facts: [...settled.facts, fact] };
}

/** Snoozed, interrupted and refused attempts are given back; one whose handler was never called did not run either. */
function givenBack(before: Job, command: SettleCommand, landed: Job): Job {
  const { outcome } = command;
  if (outcome !== 'snoozed' && outcome !== 'interrupted' && outcome !== 'refused') return landed;
  if (before.state !== STATE.RUNNING) return landed;
  const neverRan = outcome === 'refused' || (outcome === 'interrupted' && command.neverCalled);
  return { ...landed, attempt: before.attempt - 1, runs: neverRan ? before.runs - 1 : before.runs };
}
