/** Whether, and as what, a job that ended badly may be made again: once, as a new job, never by reopening the old one. */
import type { AdmissionContext } from './admission.ts';
import type { Job, Submission } from './job.ts';
import type { AdmissionRefusal, Refusal } from './refusal.ts';
import { STATE, stateIsTerminal } from './states.ts';
import { isTick } from './ticks.ts';

/** How far the compensation of the old job is. */
export type CompensationStanding = 'none' | 'unresolved' | 'succeeded' | 'failed';

/** What the store knows of the old job and of the admission of the new one. */
export interface RedriveContext extends Pick<AdmissionContext, 'now' | 'unresolved' | 'maxUnresolved'> {
  /** A lineage never used before; taken only when the compensation succeeded. */
  readonly freshLineage: string;
  readonly redrivenTo: number | null;
  readonly compensation: CompensationStanding;
}

/** What an operator asked. */
export interface RedriveCommand {
  /** Deadline of the new job, null for none. */
  readonly deadline: number | null;
  /** The version the operator saw, null to act on whatever is there. */
  readonly version: number | null;
}

/**
 * The submission of the new job, or why there is none. It keeps payload, policy and lineage, so that an effect that
 * took place is not repeated; after a successful compensation the lineage is new, since the effect was undone.
 */
export function decideRedrive(
  job: Job,
  command: RedriveCommand,
  context: RedriveContext,
): { readonly submission: Submission } | { readonly refused: Refusal | AdmissionRefusal } {
  if (command.version !== null && command.version !== job.version) return { refused: 'version_mismatch' };
  const endedBadly = stateIsTerminal(job.state) && job.state !== STATE.SUCCEEDED;
  if (!endedBadly || job.submission.internal !== null) return { refused: 'wrong_state' };
  // A compensation under way is undoing what the new job would do: nobody knows yet which lineage is right.
  if (context.compensation === 'unresolved') return { refused: 'wrong_state' };
  if (command.deadline !== null && command.deadline <= context.now) return { refused: 'deadline_passed' };
  if (context.redrivenTo !== null) return { refused: 'already_redriven' };
  if (!isTick(context.now) || !isTick(command.deadline ?? 0)) return { refused: 'tick_overflow' };
  if (context.maxUnresolved !== null && context.unresolved >= context.maxUnresolved) {
    return { refused: 'capacity_exceeded' };
  }
  const undone = context.compensation === 'succeeded';
  return {
    submission: {
      ...job.submission,
      idempotencyKey: null,
      requestId: null,
      lineage: undone ? context.freshLineage : job.submission.lineage,
      admittedAt: context.now,
      startAt: context.now,
      deadline: command.deadline,
      idempotent: job.idempotent,
      inherited: {
        fromId: job.id,
        occurrence: job.occurrence,
        requiredEffectCommitted: !undone && job.requiredEffectCommitted,
        openSteps: undone ? [] : job.openSteps,
      },
    },
  };
}
