/** The shape of one job: what was asked (written once) and where it stands (changed only by `decide` and `lapse`). */
import { STATE, type State } from './states.ts';

/** How a job recurs: every `intervalMs`, at most `maxOccurrences` times, jumping at most `maxCatchUp` missed slots. */
export interface Recurrence {
  readonly intervalMs: number;
  readonly maxOccurrences: number;
  readonly maxCatchUp: number;
}

/** What an internal job is for: it asks about, or compensates, one attempt of its parent. */
export interface InternalLink {
  readonly purpose: 'reconcile' | 'compensate';
  readonly parentId: number;
  readonly parentToken: number;
}

/** A step whose begun mark is durable and whose done mark is not. */
export interface OpenStep {
  readonly key: string;
  readonly idempotent: boolean;
}

/** What a redriven job takes over from the job it was made from, in the same lineage. */
export interface Inherited {
  readonly fromId: number;
  readonly occurrence: number;
  readonly requiredEffectCommitted: boolean;
  readonly openSteps: readonly OpenStep[];
}

/**
 * What was asked, as admitted: never changed afterwards, and the start of the job's chain. Digests are lower-case hex of
 * SHA-256; ticks are milliseconds. The row's id is not part of it, so a job may move between stores.
 */
export interface Submission {
  readonly kind: string;
  readonly revision: number;
  readonly queue: string;
  readonly orderingKey: string | null;
  readonly payloadDigest: string;
  readonly idempotencyKey: string | null;
  readonly descriptor: string;
  readonly requestId: string | null;
  readonly lineage: string;
  readonly admittedAt: number;
  readonly startAt: number;
  readonly deadline: number | null;
  readonly priority: number;
  readonly idempotent: boolean;
  readonly maxAttempts: number;
  readonly maxDeliveries: number;
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
  readonly reconcileAfterMs: number;
  readonly acceptLateReports: boolean;
  /** The definition has a reconciler; it is asked when an attempt's outcome cannot be known. */
  readonly reconciles: boolean;
  /** The definition has a compensation; it runs when a job that ever ran fails for good or is cancelled. */
  readonly compensates: boolean;
  /** The effect key without which the job may not succeed. */
  readonly requiresEffect: string | null;
  readonly recurrence: Recurrence | null;
  readonly internal: InternalLink | null;
  readonly inherited: Inherited | null;
}

/** Custody of a job for a bounded time. It is over at `expiresAt`, equality included. */
export interface Lease {
  readonly token: number;
  readonly worker: string;
  readonly expiresAt: number;
  /** Length asked for at the last claim or extension: what a lease from now may be after a clock correction. */
  readonly lengthMs: number;
}

/** The settlement that was accepted under a token, kept so that a repeated report is known as such. */
export interface Answered {
  readonly token: number;
  readonly outcome: Outcome;
  readonly digest: string;
}

/** What an attempt may report of itself, in code order. */
export const OUTCOMES = [
  'succeeded',
  'retryable',
  'permanent',
  'uncertain',
  'snoozed',
  'interrupted',
  'refused',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** Why a job stands where it stands, in code order. */
export const CAUSES = [
  'reported',
  'retry_scheduled',
  'policy_retry',
  'attempts_exhausted',
  'retry_after_deadline',
  'deliveries_exhausted',
  'snoozed',
  'interrupted',
  'payload_refused',
  'upgrade_refused',
  'recurrence',
  'deadline_passed',
  'lease_expired',
  'cancelled',
  'reconciled',
  'late_report',
] as const;
export type Cause = (typeof CAUSES)[number];

/** One job as stored. `version` counts the facts recorded of it; `tick` is that of the last one. */
export interface Job {
  readonly id: number;
  readonly submission: Submission;
  readonly state: State;
  readonly version: number;
  readonly tick: number;
  /** Starts as submitted; a worker whose definition says false makes it false for good. */
  readonly idempotent: boolean;
  /** Begins of the handler in this occurrence, less those given back. */
  readonly attempt: number;
  /** Claims in this occurrence. */
  readonly delivery: number;
  /** Begins in this occurrence whose handler may have been called; the job ever ran when it is above 0. */
  readonly runs: number;
  /** Index of the current occurrence, 0 for the first. */
  readonly occurrence: number;
  readonly startAt: number;
  /** The slot a recurring job is for, apart from the start of a retry; null when it does not recur. */
  readonly slotAt: number | null;
  /** The last token granted for this job; 0 before the first claim. */
  readonly token: number;
  readonly lease: Lease | null;
  readonly answered: Answered | null;
  /** The last report that came too late while UNCERTAIN, and how many there were: a repeated one adds nothing. */
  readonly testified: Answered | null;
  readonly testimonies: number;
  readonly cancelRequested: boolean;
  /** Ended while an attempt was running and nobody knows what it did. */
  readonly outcomeUnknown: boolean;
  readonly cause: Cause | null;
  readonly openSteps: readonly OpenStep[];
  readonly requiredEffectCommitted: boolean;
  /** This delivery committed an effect or began a step, so its handler was called, whatever is said later. */
  readonly marked: boolean;
  readonly endedAt: number | null;
}

/**
 * The job a submission starts as: SCHEDULED when its start lies ahead, else PENDING.
 *
 * @example
 * ```ts
 * initialJob(7, submission).state; // 0, PENDING
 * ```
 */
export function initialJob(id: number, submission: Submission): Job {
  return {
    id,
    submission,
    state: submission.startAt > submission.admittedAt ? STATE.SCHEDULED : STATE.PENDING,
    version: 0,
    tick: submission.admittedAt,
    idempotent: submission.idempotent,
    attempt: 0,
    delivery: 0,
    runs: 0,
    occurrence: submission.inherited?.occurrence ?? 0,
    startAt: submission.startAt,
    slotAt: submission.recurrence === null ? null : submission.startAt,
    token: 0,
    lease: null,
    answered: null,
    testified: null,
    testimonies: 0,
    cancelRequested: false,
    outcomeUnknown: false,
    cause: null,
    openSteps: submission.inherited?.openSteps ?? [],
    requiredEffectCommitted: submission.inherited?.requiredEffectCommitted ?? false,
    marked: false,
    endedAt: null,
  };
}

/** Whether a handler of this occurrence may ever have been called. */
export function everRan(job: Job): boolean {
  return job.runs > 0;
}

/** Whether the job requires an effect that is not committed, and so cannot have succeeded. */
export function lacksRequiredEffect(job: Job): boolean {
  return job.submission.requiresEffect !== null && !job.requiredEffectCommitted;
}

/** Whether a step that must not run twice was begun and never reported done. */
export function hasUnsafeOpenStep(job: Job): boolean {
  return job.openSteps.some((step) => !step.idempotent);
}
