/** Everything that may be asked of a job, and what `decide` must be told because the job cannot know it. */
import type { Decided, DecidedBy, StepVerdict } from './facts.ts';
import type { Outcome } from './job.ts';

/** Take custody under a token never granted before. `leaseMs` above 0. */
export interface ClaimCommand {
  readonly type: 'claim';
  readonly token: number;
  readonly worker: string;
  readonly leaseMs: number;
}

/** Record that the handler is about to be called. */
export interface BeginCommand {
  readonly type: 'begin';
  readonly token: number;
}

/** Let the lease end `extendMs` from now, whatever it was before. */
export interface ExtendCommand {
  readonly type: 'extend';
  readonly token: number;
  readonly extendMs: number;
}

/** Mark an effect that commits in this very transaction. Digests are lower-case hex of SHA-256. */
export interface CommitEffectCommand {
  readonly type: 'commit_effect';
  readonly token: number;
  readonly key: string;
  readonly descriptor: string;
  readonly result: string;
}

/** Mark that an external step is about to run. */
export interface BeginStepCommand {
  readonly type: 'begin_step';
  readonly token: number;
  readonly key: string;
  readonly descriptor: string;
  readonly idempotent: boolean;
}

/** Mark that an external step was done. */
export interface FinishStepCommand {
  readonly type: 'finish_step';
  readonly token: number;
  readonly key: string;
  readonly result: string;
}

/** Report an attempt's outcome. `digest` covers the result or reason, so that the same report is known again. */
export interface SettleCommand {
  readonly type: 'settle';
  readonly token: number;
  readonly worker: string;
  readonly outcome: Outcome;
  readonly digest: string;
  /** retryable, uncertain: a delay the handler named, in place of the backoff. */
  readonly delayMs: number | null;
  /** retryable, uncertain: added to the delay; drawn by the caller. */
  readonly jitterMs: number;
  /** snoozed: the tick to start at, after now. */
  readonly until: number | null;
  /** interrupted: the handler was never called. */
  readonly neverCalled: boolean;
  /** refused: the payload is bad only through an upgrade. */
  readonly byUpgrade: boolean;
}

interface Operated {
  /** Who did it. */
  readonly actor: string;
  /** Digest of why, null when nothing was said. */
  readonly reason: string | null;
  /** The version the operator saw, null to act on whatever is there. */
  readonly version: number | null;
}

/** Cancel, or ask a running or uncertain job to be cancelled at its next transition. */
export interface CancelCommand extends Operated {
  readonly type: 'cancel';
}

/** Decide the UNCERTAIN attempt of this token. */
export interface ReconcileCommand extends Operated {
  readonly type: 'reconcile';
  readonly token: number;
  readonly decision: Decided;
  readonly by: DecidedBy;
  readonly steps: readonly StepVerdict[];
}

/** Start a SCHEDULED job now. */
export interface PromoteCommand extends Operated {
  readonly type: 'promote';
}

export type Command =
  | ClaimCommand
  | BeginCommand
  | ExtendCommand
  | CommitEffectCommand
  | BeginStepCommand
  | FinishStepCommand
  | SettleCommand
  | CancelCommand
  | ReconcileCommand
  | PromoteCommand;

/** What only the store knows at the moment of deciding; all of it read under the same lock or snapshot. */
export interface Context {
  /** No older unresolved job in the job's lane; true for a job without a lane. */
  readonly laneHead: boolean;
  readonly queuePaused: boolean;
  /** The claimer's definition of the job's kind, null when it has none. */
  readonly claimer: { readonly revision: number; readonly idempotent: boolean } | null;
  /** The mark already stored under the effect key of the command, null when there is none; `result` once it is done. */
  readonly effect: { readonly descriptor: string; readonly result: string | null } | null;
}

/** Commands as the reference page lists them; section 3.2 of the design in the code's own words. */
export const COMMAND_TABLE = [
  {
    command: 'claim',
    legal:
      'PENDING, or SCHEDULED and due; head of its lane; kind and revision known to the claimer; queue not paused',
    result: 'LEASED under a new token, delivery + 1',
  },
  {
    command: 'begin',
    legal: 'LEASED; queue not paused',
    result: 'RUNNING, attempt + 1; usually in the same commit as the claim',
  },
  {
    command: 'extend',
    legal: 'LEASED or RUNNING; the extension above 0',
    result: 'the lease ends that long from now; nothing is recorded',
  },
  {
    command: 'commit_effect',
    legal: 'RUNNING',
    result: "the effect's mark; the same key and descriptor again is a duplicate",
  },
  {
    command: 'begin_step',
    legal: 'RUNNING; no unsafe step of this key open',
    result: 'the step is open until it is finished',
  },
  {
    command: 'finish_step',
    legal: 'RUNNING; the step open',
    result: 'the step is done; the same result again is a duplicate',
  },
  {
    command: 'settle succeeded',
    legal: 'RUNNING; the effect committed if the job requires one',
    result: 'SUCCEEDED; a recurring job with occurrences left: SCHEDULED for its next slot',
  },
  {
    command: 'settle retryable',
    legal: 'RUNNING',
    result:
      'SCHEDULED after the delay; DEAD_LETTERED when attempts are used up (`attempts_exhausted`) or the start would not be before the deadline (`retry_after_deadline`)',
  },
  { command: 'settle permanent', legal: 'RUNNING', result: 'PERMANENT_FAILURE' },
  {
    command: 'settle uncertain',
    legal: 'RUNNING',
    result:
      'UNCERTAIN; where a retry is permitted, the decision to retry is recorded in the same commit: SCHEDULED',
  },
  {
    command: 'settle snoozed',
    legal: 'RUNNING; the tick after now',
    result: 'SCHEDULED at that tick, attempt given back; DEAD_LETTERED at or past the deadline',
  },
  {
    command: 'settle interrupted',
    legal: 'LEASED or RUNNING: stopped at a safe point, or never called',
    result: 'PENDING, attempt given back',
  },
  {
    command: 'settle refused',
    legal: 'RUNNING, handler never called',
    result:
      "attempt given back; bad for its own revision: PERMANENT_FAILURE (`payload_refused`); bad only through an upgrade: SCHEDULED at the backoff's cap, listed as stranded",
  },
  {
    command: 'cancel',
    legal: 'any unresolved state',
    result: 'PENDING, SCHEDULED, LEASED: CANCELLED; RUNNING, UNCERTAIN: requested, and it sticks',
  },
  {
    command: 'reconcile',
    legal: 'UNCERTAIN, naming the token of the attempt in question',
    result:
      'succeeded: SUCCEEDED, and a recurrence goes on; failed: PERMANENT_FAILURE; retry: PENDING if permitted',
  },
  { command: 'promote', legal: 'SCHEDULED', result: 'its start is now' },
  {
    command: '(time passes: deadline)',
    legal: 'PENDING, SCHEDULED, LEASED, RUNNING',
    result: 'DEAD_LETTERED (`deadline_passed`); RUNNING and not idempotent: UNCERTAIN',
  },
  {
    command: '(time passes: lease)',
    legal: 'LEASED, RUNNING',
    result:
      'LEASED: PENDING. RUNNING: idempotent with attempts left PENDING, on its last attempt DEAD_LETTERED; not idempotent UNCERTAIN (`lease_expired`)',
  },
] as const;
