/** How a job leaves UNCERTAIN: by a recorded decision about one attempt, and by nothing else. */
import type { ReconcileCommand, SettleCommand } from './commands.ts';
import type { Decided, ReconciledFact, StepVerdict } from './facts.ts';
import { hasUnsafeOpenStep, type Job, lacksRequiredEffect } from './job.ts';
import type { Refusal } from './refusal.ts';
import { STATE, type State, stateIsTerminal } from './states.ts';
import { isPastDeadline, type Landing, land, landSucceeded, landWaiting } from './transition.ts';
import { DECISION, uncertainReconcile } from './uncertainty.ts';

/** A job that was decided, and the fact of it. */
export interface Reconciled {
  readonly job: Job;
  readonly facts: readonly [ReconciledFact];
}

/** Decides the UNCERTAIN attempt that `command.token` names, or refuses and leaves it UNCERTAIN. */
export function reconcile(job: Job, command: ReconcileCommand, now: number): Reconciled | Refusal {
  if (command.token !== job.token) return 'stale_token';
  if (command.version !== null && command.version !== job.version) return 'version_mismatch';
  if (stateIsTerminal(job.state)) return 'terminal';
  if (job.state !== STATE.UNCERTAIN) return 'wrong_state';
  if (command.decision === 'retry' && isPastDeadline(job, now)) return 'deadline_passed';
  if (command.decision === 'succeeded' && lacksRequiredEffect(job)) return 'effect_not_committed';
  const decided = withVerdicts(job, command.steps);
  if (decided === null) return 'effect_conflict';
  const landing = landingOf(decided, command, now);
  if (typeof landing === 'string') return landing;
  const fact: ReconciledFact = {
    type: 'reconciled',
    tick: now,
    expiresAt: null,
    token: command.token,
    decision: command.decision,
    by: command.by,
    actor: command.actor,
    reason: command.reason,
    steps: command.steps,
    cause: landing.cause,
    startAt: landing.startAt,
    to: landing.to,
  };
  return { job: land(decided, now, landing), facts: [fact] };
}

/**
 * A report of the holder itself that came after the loss counts as a decision, where the submission accepts that and
 * the report is a definite one. Null when it does not count: the job stays UNCERTAIN and the testimony stands.
 */
export function reconcileByLateReport(job: Job, command: SettleCommand, now: number): Reconciled | null {
  if (!job.submission.acceptLateReports) return null;
  if (command.outcome !== 'succeeded' && command.outcome !== 'permanent') return null;
  const decision: Decided = command.outcome === 'succeeded' ? 'succeeded' : 'failed';
  const { token, worker, digest } = command;
  const reconciled = reconcile(
    job,
    {
      type: 'reconcile',
      token,
      decision,
      by: 'late_report',
      actor: worker,
      reason: digest,
      version: null,
      steps: [],
    },
    now,
  );
  return typeof reconciled === 'string' ? null : reconciled;
}

function landingOf(job: Job, command: ReconcileCommand, now: number): Landing | Refusal {
  const cause = command.by === 'late_report' ? 'late_report' : 'reconciled';
  if (command.decision === 'succeeded') return landSucceeded(job, cause, now);
  if (command.decision === 'failed') return { to: STATE.PERMANENT_FAILURE, cause, startAt: null };
  if (hasUnsafeOpenStep(job)) return 'step_open';
  const { maxAttempts, maxDeliveries } = job.submission;
  const decided: State = uncertainReconcile(DECISION.RETRY, job.idempotent, job.attempt, maxAttempts);
  if (decided === STATE.UNCERTAIN || job.delivery >= maxDeliveries) return 'retry_not_permitted';
  return landWaiting(job, STATE.PENDING, cause, now);
}

/** The job with every step the decision speaks of closed; null when it names one that is not open, or one twice. */
function withVerdicts(job: Job, verdicts: readonly StepVerdict[]): Job | null {
  const said = new Set(verdicts.map((verdict) => verdict.key));
  const open = new Set(job.openSteps.map((step) => step.key));
  if (said.size !== verdicts.length || verdicts.some((verdict) => !open.has(verdict.key))) return null;
  return { ...job, openSteps: job.openSteps.filter((step) => !said.has(step.key)) };
}
