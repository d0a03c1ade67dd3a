/** What follows in the same commit: compensations, reconcile jobs, redriven jobs, and what retention may take. */
import { compensationIsRequired, type Job, STATE, stateIsTerminal } from '../../src/core/index.ts';
import type { Claims } from './claims.ts';
import type { Step } from './step.ts';

type Purpose = 'reconcile' | 'compensate';

function internalOf(step: Step, parent: Job, purpose: Purpose): Job | null {
  for (const { job } of step.after.values()) {
    const link = job.submission.internal;
    if (link?.purpose === purpose && link.parentId === parent.id && link.parentToken === parent.token)
      return job;
  }
  return null;
}

export function auditInternal(step: Step, claims: Claims): void {
  for (const id of step.recorded.keys()) {
    const after = step.after.get(id)?.job;
    if (after === undefined || after.submission.internal !== null) continue;
    const before = step.before.get(id)?.job ?? null;
    auditCompensation(step, before, after, claims);
    auditReconciler(step, before, after, claims);
  }
  for (const [id, { job }] of step.after) if (!step.before.has(id)) auditNew(step, job, claims);
  auditRedrive(step, claims);
  auditRetention(step, claims);
}

function auditCompensation(step: Step, before: Job | null, after: Job, claims: Claims): void {
  if (before?.endedAt !== null || after.endedAt === null || !after.submission.compensates) return;
  const required = compensationIsRequired(after.runs > 0, after.state);
  const made = internalOf(step, after, 'compensate');
  const fresh = made !== null && !step.before.has(made.id);
  claims.hold(
    'compensation',
    fresh === required,
    () => `job ${after.id} ended as ${after.state} after ${after.runs} runs, compensation ${made?.id}`,
  );
}

function auditReconciler(step: Step, before: Job | null, after: Job, claims: Claims): void {
  if (!after.submission.reconciles) return;
  const was = before?.state === STATE.UNCERTAIN;
  const is = after.state === STATE.UNCERTAIN;
  if (is && !was) {
    const asks = internalOf(step, after, 'reconcile');
    const startAt = step.now + after.submission.reconcileAfterMs;
    const right = asks !== null && !stateIsTerminal(asks.state) && asks.startAt === startAt;
    claims.hold(
      'reconciler',
      right,
      () => `job ${after.id} is UNCERTAIN, asked by ${asks?.id} at ${asks?.startAt}, not ${startAt}`,
    );
  }
  if (was && !is && before !== null) {
    const asks = internalOf(step, before, 'reconcile');
    const over = asks === null || stateIsTerminal(asks.state) || asks.cancelRequested;
    claims.hold(
      'reconciler',
      over,
      () => `job ${after.id} was decided and job ${asks?.id} still asks, state ${asks?.state}`,
    );
  }
}

/** A redriven job is linked from its origin. An internal job comes with the move of its parent that asks for it, and is what the design says it is. */
function auditNew(step: Step, job: Job, claims: Claims): void {
  const { internal, inherited, idempotent, orderingKey, deadline, priority } = job.submission;
  const origin = step.after.get(inherited?.fromId ?? 0);
  if (origin !== undefined) {
    const linked = origin.redrivenTo === job.id;
    claims.hold(
      'redrive',
      linked,
      () => `job ${origin.job.id} leads to ${origin.redrivenTo}, not to ${job.id}`,
    );
  }
  if (internal === null) return;
  const parent = step.after.get(internal.parentId)?.job;
  const claim = internal.purpose === 'reconcile' ? 'reconciler' : 'compensation';
  const moved = step.recorded.has(internal.parentId) && parent?.submission.internal === null;
  claims.hold(claim, moved, () => `job ${job.id} was made for job ${internal.parentId}, which did not move`);
  if (parent === undefined) return;
  const asked =
    internal.purpose === 'reconcile' ? parent.submission.reconciles : parent.submission.compensates;
  const shaped = idempotent && orderingKey === null && deadline === null && priority > 1_000;
  const alike =
    job.submission.revision === parent.submission.revision && job.submission.kind === parent.submission.kind;
  claims.hold(
    claim,
    asked && shaped && alike,
    () => `job ${job.id} for job ${parent.id}: ${JSON.stringify(job.submission)}`,
  );
}

function auditRedrive(step: Step, claims: Claims): void {
  for (const [id, after] of step.after) {
    const before = step.before.get(id);
    if (after.redrivenTo === null || before === undefined || before.redrivenTo !== null) continue;
    const made = step.after.get(after.redrivenTo)?.job;
    const { lineage } = after.job.submission;
    const compensation = internalOf(step, after.job, 'compensate');
    const undone = compensation?.state === STATE.SUCCEEDED;
    const inherits = made !== undefined && (made.submission.lineage === lineage) !== undone;
    const linked = made?.submission.inherited?.fromId === id && !step.before.has(made.id);
    const ended = stateIsTerminal(after.job.state) && after.job.state !== STATE.SUCCEEDED;
    claims.hold(
      'redrive',
      inherits && linked && ended,
      () => `job ${id} in state ${after.job.state} became ${JSON.stringify(made)}`,
    );
  }
  const { call } = step;
  if (call.verb !== 'redrive' || call.verdict.ok) return;
  const added = [...step.after.values()].some(
    ({ job }) => job.submission.inherited?.fromId === call.request.id && !step.before.has(job.id),
  );
  claims.hold('redrive', !added, () => `job ${call.request.id} was redriven and refused at once`);
}

function auditRetention(step: Step, claims: Claims): void {
  const { call } = step;
  const gone = [...step.before.values()].filter(({ job }) => !step.after.has(job.id));
  if (call.verb !== 'prune') {
    claims.hold(
      'retention',
      gone.length === 0,
      () => `jobs ${gone.map(({ job }) => job.id).join()} are gone`,
    );
    return;
  }
  claims.hold(
    'retention',
    gone.length === call.pruned.jobs,
    () => `${gone.length} jobs are gone, told ${call.pruned.jobs}`,
  );
  for (const { job, needsYou, dismissed } of gone) {
    const failed = job.state === STATE.PERMANENT_FAILURE || job.state === STATE.DEAD_LETTERED;
    const seen =
      call.request.undismissed === true ||
      job.submission.internal !== null ||
      (needsYou === null && (!failed || dismissed !== null));
    const old = job.endedAt !== null && step.now - job.endedAt >= (call.request.succeededAfterMs ?? 0);
    claims.hold(
      'retention',
      stateIsTerminal(job.state) && seen && old,
      () => `job ${job.id} in state ${job.state} is gone, needs you: ${needsYou}`,
    );
  }
}
