/**
 * The store interface: a short list of verbs that a backend has when it passes the conformance suite. Every verb is one
 * transaction: what it answers is durable as far as the backend is, and what it refuses or throws has changed nothing
 * but a lapse that was due.
 *
 * Verdicts come in the order of what was asked. Refusals are values. A verb throws for bad input (`InvalidInputError`,
 * before anything is changed), for a sealed or closed store, and for broken storage; never for a race.
 */
import type {
  AdmissionRefusal,
  Decided,
  DecidedBy,
  DefinitionRecord,
  DefinitionStanding,
  IgnoredOption,
  Job,
  JobRequest,
  Outcome,
  Refusal,
  State,
} from '../core/index.ts';
import type { Chain } from '../evidence/index.ts';
import type { Snapshot } from './snapshot.ts';

/** A claim of one delivery: what every write of an attempt must carry. */
export interface Holder {
  readonly id: number;
  readonly token: number;
}

/** Who does something and why; both are recorded. */
export interface By {
  /** 1 to 256 bytes. */
  readonly actor: string;
  /** At most 4 KiB; longer text is refused. */
  readonly reason?: string | null;
}

export type EnqueueVerdict =
  | { readonly status: 'created'; readonly id: number; readonly job: Job }
  | {
      readonly status: 'duplicate';
      readonly id: number;
      /** Null when the job was pruned and only its key is left. */
      readonly job: Job | null;
      readonly ignored: readonly IgnoredOption[];
    }
  | { readonly status: 'refused'; readonly refused: AdmissionRefusal; readonly id: number | null }
  /** Would have been created, but another member of an atomic batch was refused. */
  | { readonly status: 'withheld' };

export interface ClaimRequest {
  /** 1 to 128 bytes, random per start of a worker. */
  readonly worker: string;
  /** 1 ms to a day. */
  readonly leaseMs: number;
  /** 1 to 500 jobs. */
  readonly max: number;
  /** Unique per request: asked again, it answers the same deliveries while they last. */
  readonly requestId: string;
  /** What the claimer can run; `idempotent` false makes a job's contract false for good. */
  readonly definitions: readonly {
    readonly kind: string;
    readonly revision: number;
    readonly idempotent: boolean;
  }[];
  /** Only these queues; null for all. */
  readonly queues?: readonly string[] | null;
  /** Begin what was claimed in the same commit; both facts are recorded. */
  readonly begin: boolean;
}

/** One claimed job: `job.token` is what its holder must carry, `job.state` says whether it was begun. */
export interface Delivery {
  readonly job: Job;
  /** Canonical JSON text. */
  readonly payload: string;
}

export type Verdict =
  | { readonly ok: true; readonly duplicate: boolean; readonly job: Job }
  | { readonly ok: false; readonly refused: Refusal; readonly job: Job | null };

export type ExtendVerdict =
  /** `job.cancelRequested` tells the holder to stop at a safe point. */
  | { readonly status: 'extended'; readonly expiresAt: number; readonly job: Job }
  /** The token is still ours but the row is in use: try again at once, nothing is lost. */
  | { readonly status: 'busy' }
  | { readonly status: 'lost'; readonly refused: Refusal; readonly job: Job | null };

/** An attempt's outcome with its report: JSON text of the result when succeeded, else the reason. */
export interface Settlement extends Holder {
  readonly worker: string;
  readonly outcome: Outcome;
  readonly report?: string | null;
  readonly delayMs?: number | null;
  readonly jitterMs?: number | null;
  readonly until?: number | null;
  readonly neverCalled?: boolean | null;
  readonly byUpgrade?: boolean | null;
}

export interface Settled {
  readonly settled: readonly Verdict[];
  readonly claimed: readonly Delivery[];
}

/** What may be done under a held token in one transaction of the store's own database. */
export interface StoreTransaction {
  /** The store's clock as read for this transaction. */
  readonly now: number;
  readonly job: Job;
  /**
   * What the program keeps in the same database: the memory store's own JSON state, edited in place; for SQL backends
   * a handle to run statements on.
   */
  readonly application: ApplicationState;
  /**
   * Runs `apply` and commits its result with the effect's mark, or answers the stored result without running it.
   * `apply` is synchronous: a promise is refused and everything rolled back.
   */
  commitEffect(
    key: string,
    descriptor: unknown,
    apply: () => unknown,
  ): { duplicate: boolean; result: unknown };
  /** Marks an external step begun; `done` answers the stored result of one that was finished. */
  beginStep(
    key: string,
    step: { readonly descriptor: unknown; readonly idempotent: boolean },
  ): { readonly status: 'begun' } | { readonly status: 'done'; readonly result: unknown };
  finishStep(key: string, result: unknown): void;
  /** Admits jobs with this transaction. A refused member changes nothing; whether that is reason to throw is yours to say. */
  enqueue(requests: readonly JobRequest[]): readonly EnqueueVerdict[];
  /** Settles the held job. It comes last: nothing may follow it. */
  settle(settlement: Omit<Settlement, 'id' | 'token' | 'worker'>): Job;
}

/** JSON the program keeps beside its jobs. */
export type ApplicationState = Record<string, unknown>;

export type Transacted<Value> =
  | { readonly ok: true; readonly value: Value; readonly job: Job }
  | { readonly ok: false; readonly refused: Refusal; readonly job: Job | null };

/** What a decision says of an open step: whether it took place, and if so with what result. */
interface StepStatement {
  readonly key: string;
  readonly tookPlace: boolean;
  readonly result?: unknown;
}

export interface ReconcileRequest {
  readonly id: number;
  /** The attempt in question. */
  readonly token: number;
  readonly decision: Decided;
  readonly by: By & { readonly role?: Exclude<DecidedBy, 'late_report'> };
  readonly steps?: readonly StepStatement[] | null;
  readonly version?: number | null;
  /** With `failed`: make a new job of it in the same commit. */
  readonly redrive?: { readonly deadline: number | null } | null;
  /** The internal job that asks; it must be held, and is settled succeeded in the same commit. */
  readonly internal?: (Holder & { readonly worker: string }) | null;
}

export interface OperatorRequest {
  readonly id: number;
  readonly by: By;
  /** The version the operator saw; another one now is refused. */
  readonly version?: number | null;
}

export interface RedriveRequest extends OperatorRequest {
  /** Deadline of the new job, null for none. */
  readonly deadline?: number | null;
  /** Decide and answer, but change nothing. */
  readonly dryRun?: boolean | null;
}

export type RedriveVerdict =
  | { readonly ok: true; readonly job: Job; readonly redriven: Job | null }
  | { readonly ok: false; readonly refused: Refusal | AdmissionRefusal; readonly job: Job | null };

export type ReconcileVerdict =
  | {
      readonly ok: true;
      readonly duplicate: boolean;
      readonly job: Job;
      /** The new job when a redrive was asked for and made. */
      readonly redriven: Job | null;
      /** Why it was not made; the decision itself stands. */
      readonly redriveRefused: Refusal | AdmissionRefusal | null;
    }
  | { readonly ok: false; readonly refused: Refusal; readonly job: Job | null };

/** A settlement that came too late, as kept: it decides nothing by itself. */
export interface Testimony {
  readonly id: number;
  readonly tick: number;
  readonly worker: string;
  readonly token: number;
  readonly outcome: Outcome;
  readonly digest: string;
  readonly report: string;
  /** Also an entry of the chain: it came while the job was UNCERTAIN. */
  readonly chained: boolean;
}

/** One job with what lies beside it. */
export interface JobView {
  readonly job: Job;
  readonly payload: string;
  /** The last accepted report: result JSON when SUCCEEDED, else a reason; null before the first settlement. */
  readonly report: string | null;
  readonly redrivenTo: number | null;
  readonly dismissed: (By & { readonly tick: number }) | null;
  readonly testimony: readonly Testimony[];
  /** Testimony that says otherwise than what the job ended as. */
  readonly contradictions: number;
  readonly needsYou: NeedsYou | null;
}

/** Why a person should look. */
export type NeedsYou =
  | 'uncertain'
  | 'outcome_unknown'
  | 'compensation_required'
  | 'compensation_failed'
  | 'stranded'
  | 'contradiction';

export interface FindQuery {
  readonly states?: readonly State[] | null;
  readonly kinds?: readonly string[] | null;
  readonly queues?: readonly string[] | null;
  readonly orderingKey?: string | null;
  readonly lineage?: string | null;
  readonly needsYou?: boolean | null;
  /** Internal jobs are left out unless asked for. */
  readonly internal?: boolean | null;
  /** Ids above this one; 0 for the first page. */
  readonly afterId?: number | null;
  /** 1 to 1,000, default 100. */
  readonly limit?: number | null;
}

export interface Found {
  readonly jobs: readonly JobView[];
  /** Give it as `afterId` for the next page; null when there is none. */
  readonly nextAfterId: number | null;
}

export interface QueueView {
  readonly queue: string;
  readonly maxUnresolved: number | null;
  readonly paused: (By & { readonly tick: number }) | null;
  /** Jobs by state code, internal ones included. */
  readonly states: Readonly<Record<number, number>>;
  /** What counts against `maxUnresolved`. */
  readonly unresolved: number;
}

export interface Counts {
  readonly states: Readonly<Record<number, number>>;
  readonly needsYou: number;
  /** Unresolved jobs no live worker can take: kind or revision unknown to all of them. */
  readonly stranded: number;
  readonly contradictions: number;
}

export interface LaneView {
  readonly queue: string;
  readonly orderingKey: string;
  /** Oldest unresolved job. */
  readonly headId: number;
  readonly headState: State;
  readonly unresolved: number;
}

export interface WorkerView {
  readonly worker: string;
  readonly seenAt: number;
  /** Whether it was seen within 90 seconds. */
  readonly alive: boolean;
  readonly definitions: readonly { readonly kind: string; readonly revision: number }[];
  readonly leases: number;
}

/** Everything a proof of one job needs; `bundle` and `verify` work from it without the store. */
export interface JobEvidence {
  readonly job: Job;
  readonly payload: string;
  readonly chain: Chain;
  /** Text by digest: results, reasons and reports. */
  readonly texts: Readonly<Record<string, string>>;
  readonly testimony: readonly Testimony[];
}

/** Why a job is not running, first reason first. */
export interface Explanation {
  readonly claimable: boolean;
  readonly reason: Refusal | 'claimable';
  /** One sentence a person can act on. */
  readonly sentence: string;
  readonly facts: {
    readonly state: State;
    readonly dueAt?: number;
    readonly heldById?: number;
    readonly worker?: string;
    readonly leaseUntil?: number;
    readonly pausedBy?: string;
    readonly boundRevision?: number;
    readonly knownRevision?: number;
  };
}

/** An act on the store itself. */
export interface Act {
  readonly act: 'pause' | 'resume' | 'configure' | 'restore' | 'seal' | 'prune' | 'redrive' | 'dismiss';
  readonly tick: number;
  readonly actor: string;
  readonly reason: string | null;
  /** What it was done to, as canonical JSON text. */
  readonly detail: string;
}

export interface Registration {
  readonly worker: string;
  readonly definitions: readonly DefinitionRecord[];
}

export interface PruneRequest {
  readonly by: By;
  /** Ages since the end of a job; null keeps them for ever. Defaults: 7 days. */
  readonly succeededAfterMs?: number | null;
  readonly cancelledAfterMs?: number | null;
  /** PERMANENT_FAILURE and DEAD_LETTERED go only when dismissed, or when asked for by `undismissed`. */
  readonly failedAfterMs?: number | null;
  readonly undismissed?: boolean | null;
  /** 1 to 5,000 jobs. */
  readonly limit?: number | null;
}

export interface Pruned {
  readonly jobs: number;
  readonly keys: number;
  readonly effects: number;
  /** Another call would find more. */
  readonly more: boolean;
}

/** What a backend cannot do is said here, with what happens instead; there is no test for a backend's name. */
export interface Capabilities {
  /** Whether what was answered survives the end of the process. */
  readonly durable: boolean;
  /** Whether other processes may share the store. */
  readonly shared: boolean;
  readonly clock: 'unix' | 'simulated';
}

/** A hint after a commit that work may be claimable; it may be late, doubled or lost, so polling stays the net. */
export type Wake = (hint: { readonly queues: readonly string[] }) => void;

export interface Store {
  readonly capabilities: Capabilities;

  /**
   * Admits jobs in one commit, ids in the order given. Each member is checked in the order well formed, idempotency,
   * deadline, capacity. A bad member throws and nothing is stored; a refused one leaves the others alone unless
   * `atomic`, which stores all or none. A rival for the same key waits for the outcome of the first and then sees it.
   */
  enqueue(
    requests: readonly JobRequest[],
    options?: { readonly atomic?: boolean },
  ): Promise<readonly EnqueueVerdict[]>;

  /**
   * Gives custody of up to `max` jobs, each under a token never given before, after lapsing in the same commit what is
   * overdue in its reach. Only heads of lanes, only what the claimer can run, nothing from paused queues; higher
   * priority first, then oldest, except that a token divisible by 16 takes the oldest. Two claimers never get the same
   * delivery; the loser gets another job or fewer.
   */
  claim(request: ClaimRequest): Promise<readonly Delivery[]>;

  /** Records that handlers are about to be called. A loser is told why and must not call its handler. */
  begin(holders: readonly Holder[]): Promise<readonly Verdict[]>;

  /** Lets leases end `extendMs` from now. One lost lease does not touch the others. */
  extend(extensions: readonly (Holder & { readonly extendMs: number })[]): Promise<readonly ExtendVerdict[]>;

  /**
   * Settles attempts, and in the same commit claims for the slots that became free. A stale or late settlement changes
   * nothing and is kept as testimony; the same settlement again is a `duplicate`. Internal jobs that follow are
   * enqueued, or cancelled, with it.
   */
  settle(settlements: readonly Settlement[], claim?: ClaimRequest | null): Promise<Settled>;

  /**
   * Runs `apply` in one transaction with the job's custody verified: it commits effects, step marks, enqueues and
   * perhaps the settlement together, or none of it. What `apply` throws rolls back and is thrown on; a refusal of one
   * of its calls rolls back and is the answer.
   */
  transact<Value>(holder: Holder, apply: (tx: StoreTransaction) => Value): Promise<Transacted<Value>>;

  /** Lapses up to `limit` overdue jobs, whoever held them. `more` tells to call again. */
  lapse(limit: number): Promise<{ readonly ids: readonly number[]; readonly more: boolean }>;

  cancel(request: OperatorRequest): Promise<Verdict>;
  /** Decides an UNCERTAIN attempt; bound to its token, so a decision about an older attempt is refused. */
  reconcile(request: ReconcileRequest): Promise<ReconcileVerdict>;
  promote(request: OperatorRequest): Promise<Verdict>;
  /** Makes a new job of one that ended badly, once; both rows are linked and the act recorded in the same commit. */
  redrive(request: RedriveRequest): Promise<RedriveVerdict>;
  /** Marks a terminal job as looked at: it no longer needs anybody and retention may take it. */
  dismiss(request: OperatorRequest): Promise<Verdict>;

  /** Starts nothing in the queue from this commit on; admission stays open. */
  pause(queue: string, by: By): Promise<void>;
  resume(queue: string, by: By): Promise<void>;
  /** Bounds the queue's unresolved jobs; null lifts the bound. Jobs beyond a lower bound stay. */
  configure(queue: string, settings: { readonly maxUnresolved: number | null }, by: By): Promise<void>;
  /**
   * Records a worker and its definitions. `changed` for any of them means the worker must not start; then nothing was
   * recorded. The ledger of definitions only grows.
   */
  register(registration: Registration): Promise<readonly DefinitionStanding[]>;

  get(id: number): Promise<JobView | null>;
  getByKey(idempotencyKey: string): Promise<{ readonly id: number; readonly view: JobView | null } | null>;
  find(query: FindQuery): Promise<Found>;
  counts(): Promise<Counts>;
  queues(): Promise<readonly QueueView[]>;
  /** Lanes with unresolved jobs, longest first. */
  lanes(limit: number): Promise<readonly LaneView[]>;
  workers(): Promise<readonly WorkerView[]>;
  evidence(id: number): Promise<JobEvidence | null>;
  /** Why the job is not running, as seen by a claimer with these definitions; null when there is no such job. */
  explain(id: number, definitions: ClaimRequest['definitions']): Promise<Explanation | null>;
  acts(): Promise<readonly Act[]>;

  /** Calls `wake` after commits that may have made work claimable, until the answer is called. */
  subscribe(wake: Wake): () => void;

  /**
   * Removes terminal jobs past their age with their evidence, the longest ended first; their keys stay until their own
   * time is over.
   */
  prune(request: PruneRequest): Promise<Pruned>;
  /** A copy of everything, sharing nothing with the store. */
  snapshot(): Promise<Snapshot>;
  /**
   * Replaces an empty store's content. `restart` keeps every counter; `copy` starts ids and tokens at the larger of
   * both plus 2^32, so that no token handed out since can be beaten. Everything is validated and replayed first; what
   * does not agree is refused with `SnapshotRefusedError` and the store is as it was.
   */
  restore(snapshot: unknown, options: { readonly as: 'restart' | 'copy'; readonly by: By }): Promise<void>;
  /** Refuses work from now on and says where the jobs went. */
  seal(movedTo: string, by: By): Promise<void>;
  /** Brings the storage to the current schema; safe to call from many processes. */
  migrate(): Promise<void>;
  close(): Promise<void>;
}
