/** What a handler is given: its job, its custody, and the few ways to do something under it. */
import type { StoreTransaction } from '../store/store.ts';

/** A job as its handler sees it. */
export interface RunningJob<Payload> {
  readonly id: number;
  readonly kind: string;
  readonly payload: Payload;
  readonly queue: string;
  readonly orderingKey: string | null;
  readonly deadline: number | null;
  /** Index of the occurrence of a recurring job, 0 otherwise. */
  readonly occurrence: number;
}

interface CommonContext {
  /** Aborted when custody is lost, the job is to be cancelled, or time is up; its reason is an `AbortReason`. */
  readonly signal: AbortSignal;
  /** Begins of this job, this one included. */
  readonly attempt: number;
  /** Claims of this job, those that were given back included. */
  readonly delivery: number;
  /** No attempt starts at or after this tick; null for none. */
  readonly deadline: number | null;
  /** The fencing token of this delivery; hand it to tables of your own. */
  readonly token: number;
  /** Milliseconds since the epoch, as the worker's clock reads. */
  readonly now: () => number;
  /**
   * A key for a provider: the same over retries and redrives, another one for each occurrence and name. It reads
   * `custody:<lineage>:<occurrence>:<name>`. In `reconcile` and `compensate` it is the key that `run` had: the lineage and
   * occurrence are those of the job in question.
   */
  readonly effectKey: (name: string) => string;
  readonly log: (message: string, details?: Readonly<Record<string, unknown>>) => void;
  /** Tells how far the handler is; it shows in the worker's `progress()` while the attempt runs, and is not stored. */
  readonly progress: (value: unknown) => void;
}

/** The context of `run`. */
export interface JobContext extends CommonContext {
  /**
   * Commits a local effect once, in one transaction with its mark, and answers its result; a redelivery gets the stored
   * one. `apply` is synchronous. Throws `LeaseLostError` when this worker does not hold the job any more.
   */
  readonly commit: <Result>(
    key: string,
    descriptor: unknown,
    apply: (tx: StoreTransaction) => Result,
  ) => Promise<Result>;
  /**
   * Runs an external step with a begun mark before it and a done mark after. A redelivery that finds it done gets the
   * stored result; one that finds it begun runs it again if it is idempotent, and otherwise settles uncertain.
   */
  readonly step: <Result>(
    key: string,
    options: { readonly idempotent: boolean; readonly descriptor?: unknown },
    run: (effectKey: string) => Promise<Result>,
  ) => Promise<Result>;
}

/** The context of `reconcile`: which attempt is in question. */
export interface ReconcileContext extends CommonContext {
  readonly lostToken: number;
}

/** The context of `compensate`. */
export interface CompensateContext extends CommonContext {
  readonly endedAs: 'PERMANENT_FAILURE' | 'CANCELLED';
}
