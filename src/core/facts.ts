/** What may be recorded of a job: a closed set of facts, each complete enough to be decided again by replay. */
import type { Cause, Outcome } from './job.ts';
import type { State } from './states.ts';

interface Recorded {
  /** When it was decided; a job's ticks never fall, except across a recorded clock correction. */
  readonly tick: number;
  /** Expiry of the lease in force when it was decided, null without one: heartbeats leave no fact of their own. */
  readonly expiresAt: number | null;
  /** The state after it. */
  readonly to: State;
}

/** Custody was given to a worker under a new token. `idempotent` is the contract from here on. */
export interface ClaimedFact extends Recorded {
  readonly type: 'claimed';
  readonly worker: string;
  readonly token: number;
  readonly delivery: number;
  readonly idempotent: boolean;
}

/** The holder was about to call the handler. */
export interface BegunFact extends Recorded {
  readonly type: 'begun';
  readonly worker: string;
  readonly token: number;
  readonly attempt: number;
}

/** An effect in the store's own database committed together with this fact. */
export interface EffectCommittedFact extends Recorded {
  readonly type: 'effect_committed';
  readonly worker: string;
  readonly token: number;
  readonly key: string;
  readonly descriptor: string;
  readonly result: string;
}

/** The holder was about to run an external step. */
export interface StepBegunFact extends Recorded {
  readonly type: 'step_begun';
  readonly worker: string;
  readonly token: number;
  readonly key: string;
  readonly descriptor: string;
  readonly idempotent: boolean;
}

/** The holder reported an external step done. */
export interface StepDoneFact extends Recorded {
  readonly type: 'step_done';
  readonly worker: string;
  readonly token: number;
  readonly key: string;
  readonly result: string;
}

/** An attempt's outcome was accepted. Inputs (`delayMs`, `jitterMs`, `until`, flags) come first, results after. */
export interface SettledFact extends Recorded {
  readonly type: 'settled';
  readonly worker: string;
  readonly token: number;
  readonly outcome: Outcome;
  readonly digest: string;
  /** Delay the handler named, null when the backoff decided. */
  readonly delayMs: number | null;
  readonly jitterMs: number;
  /** Tick a snooze asked for. */
  readonly until: number | null;
  /** Interrupted before the handler was ever called. */
  readonly neverCalled: boolean;
  /** Refused because of its own revision's schema (false) or only through an upgrade (true). */
  readonly byUpgrade: boolean;
  readonly cause: Cause;
  /** Start of what follows, when something does. */
  readonly startAt: number | null;
}

/** The policy decided to run an uncertain idempotent attempt again, in the commit that recorded the uncertainty. */
export interface RetryDecidedFact extends Recorded {
  readonly type: 'retry_decided';
  readonly token: number;
  readonly cause: Cause;
  readonly startAt: number | null;
}

/** Time passed a deadline or a lease; `at` is the one it passed. */
export interface LapsedFact extends Recorded {
  readonly type: 'lapsed';
  readonly token: number;
  readonly by: 'deadline' | 'lease';
  readonly at: number;
  readonly cause: Cause;
}

/** Somebody cancelled the job (`to` CANCELLED) or asked for it (`to` unchanged). */
export interface CancelFact extends Recorded {
  readonly type: 'cancel';
  readonly actor: string;
  readonly reason: string | null;
}

/** What a decision to retry says of one open step. */
export interface StepVerdict {
  readonly key: string;
  readonly tookPlace: boolean;
  /** Digest of the step's result when it took place. */
  readonly result: string | null;
}

/** An UNCERTAIN attempt, named by its token, was decided. */
export interface ReconciledFact extends Recorded {
  readonly type: 'reconciled';
  readonly token: number;
  readonly decision: Decided;
  readonly by: DecidedBy;
  readonly actor: string;
  readonly reason: string | null;
  readonly steps: readonly StepVerdict[];
  readonly cause: Cause;
  readonly startAt: number | null;
}

/** The start of a SCHEDULED job was moved to now. */
export interface PromotedFact extends Recorded {
  readonly type: 'promoted';
  readonly actor: string;
  readonly reason: string | null;
}

/** A report about an UNCERTAIN attempt came too late to settle it. */
export interface TestimonyFact extends Recorded {
  readonly type: 'testimony';
  readonly worker: string;
  readonly token: number;
  readonly outcome: Outcome;
  readonly digest: string;
}

/** The store's clock had run ahead by more than its tolerance and was followed back to `tick`, from `from`. */
export interface ClockCorrectedFact extends Recorded {
  readonly type: 'clock_corrected';
  readonly from: number;
  readonly startAt: number;
}

export type Fact =
  | ClaimedFact
  | BegunFact
  | EffectCommittedFact
  | StepBegunFact
  | StepDoneFact
  | SettledFact
  | RetryDecidedFact
  | LapsedFact
  | CancelFact
  | ReconciledFact
  | PromotedFact
  | TestimonyFact
  | ClockCorrectedFact;

/** Decisions about an UNCERTAIN attempt, in the code order of the reconcile procedure. */
export const DECIDED = ['succeeded', 'failed', 'retry'] as const;
export type Decided = (typeof DECIDED)[number];

/** Who decided, in code order. */
export const DECIDED_BY = ['person', 'reconciler', 'late_report'] as const;
export type DecidedBy = (typeof DECIDED_BY)[number];
