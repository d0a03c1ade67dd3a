/**
 * What the verbs need of a backend inside one transaction: rows by id, marks, keys, counters and the selection of work.
 * The engine above decides; a session selects, fences and persists, all of it or nothing.
 */

import type { DefinitionRecord, Job, Outcome } from '../core/index.ts';
import type { Chain } from '../evidence/index.ts';
import type { Act, ClaimRequest, Testimony } from './store.ts';

/** Who did something to a row, why, and when. */
export interface Noted {
  readonly actor: string;
  readonly reason: string | null;
  readonly tick: number;
}

/**
 * One job with what its verbs may change. Rows are replaced, never changed. `chain.entries` and `texts` may leave out
 * what was stored before: a session writes what an `after` has more than its `before`.
 */
export interface Row {
  readonly job: Job;
  readonly chain: Chain;
  /** Results, reasons and reports by their digest. */
  readonly texts: Readonly<Record<string, string>>;
  /** The claim that gave the current lease. */
  readonly claimRequestId: string | null;
  /** Digest of the last accepted report. */
  readonly reportDigest: string | null;
  readonly redrivenTo: number | null;
  readonly dismissed: Noted | null;
}

/** An idempotency key; it outlives its job. `keepUntil` is null while the job is unresolved. */
export interface KeyRow {
  readonly key: string;
  readonly descriptor: string;
  readonly jobId: number;
  readonly keepUntil: number | null;
}

/** The mark of an effect: a commit is always done, a step is begun before it is done. */
export interface EffectRow {
  readonly lineage: string;
  readonly occurrence: number;
  readonly key: string;
  readonly type: 'commit' | 'step';
  readonly done: boolean;
  readonly descriptor: string;
  /** Canonical JSON text; null until done. */
  readonly result: string | null;
  readonly jobId: number;
  readonly token: number;
}

/** The place of a mark: effect keys belong to a lineage and an occurrence. */
export type EffectPlace = Pick<EffectRow, 'lineage' | 'occurrence' | 'key'>;

export interface QueueRow {
  readonly queue: string;
  readonly maxUnresolved: number | null;
  readonly paused: Noted | null;
}

/** Takes claimable jobs one by one, each for the token it is about to be given. */
export interface Picker {
  next(token: number): Row | null;
}

/** One open transaction of a backend. */
export interface Session {
  /** The store's clock, read once for this transaction and not below the tick of the last commit. */
  readonly now: number;
  /** A lineage id never used before. */
  randomId(): string;
  readonly keepKeysForMs: number;

  row(id: number): Row | undefined;
  payload(id: number): string;
  /** Stores a new row; its id came from `takeId`. */
  insert(row: Row, payload: string): void;
  write(before: Row, after: Row): void;
  takeId(): number;
  /** The token `takeToken` would give. */
  peekToken(): number;
  /** The next fencing token; never given twice, whatever becomes of the job. */
  takeToken(): number;

  key(key: string): KeyRow | undefined;
  setKey(row: KeyRow): void;
  /** The job of an enqueue request that was made before. */
  requestedJob(requestId: string): number | undefined;
  effect(place: EffectPlace): EffectRow | undefined;
  setEffect(row: EffectRow): void;
  deleteEffect(place: EffectPlace): void;
  testimony(id: number): readonly Testimony[];
  addTestimony(testimony: Testimony): void;

  queue(queue: string): QueueRow | undefined;
  setQueue(row: QueueRow): void;
  definitions(kind: string, revision: number): readonly DefinitionRecord[];
  addDefinition(definition: DefinitionRecord): void;
  seeWorker(
    worker: string,
    definitions: readonly { readonly kind: string; readonly revision: number }[],
  ): void;
  keepWorkerAlive(worker: string): void;
  addAct(
    act: Act['act'],
    by: { readonly actor: string; readonly reason: string | null },
    detail: string,
  ): void;
  seal(movedTo: string): void;

  /** Whether no older unresolved job is in the job's lane. */
  isHead(job: Job): boolean;
  /** Heads of lanes that may be claimed now, under the routes that the request and the pauses leave open. */
  picker(request: Pick<ClaimRequest, 'definitions' | 'queues' | 'max'>): Picker;
  /** Rows held under leases given by this claim request. */
  heldBy(requestId: string): readonly Row[];
  /** The next overdue row, or null; ask again after it was lapsed. */
  nextOverdue(): Row | null;
  /** Unresolved jobs of a queue that count against its bound. */
  unresolved(queue: string): number;
}

/** What a settlement reports, as the engine passes it on. */
export interface Reported {
  readonly id: number;
  readonly token: number;
  readonly worker: string;
  readonly outcome: Outcome;
}
