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
  /** The fencing token of this delivery; hand it to tables of your own. */
  readonly token: number;
  /** Milliseconds since the epoch, as the worker's clock reads. */
  now(): number;
  /**
   * A key for a provider: the same over retries and redrives, another one for each occurrence and name. It reads
   * `custody:<lineage>:<occurrence>:<name>`.
   */
  effectKey(name: string): string;
  log(message: string, details?: Readonly<Record<string, unknown>>): void;
}

/** The context of `run`. */
export interface JobContext extends CommonContext {
  /**
   * Commits a local effect once, in one transaction with its mark, and answers its result; a redelivery gets the stored
   * one. `apply` is synchronous. Throws `LeaseLostError` when this worker does not hold the job any more.
   */
  commit<Result>(key: string, descriptor: unknown, apply: (tx: StoreTransaction) => Result): Promise<Result>;
  /**
   * Runs an external step with a begun mark before it and a done mark after. A redelivery that finds it done gets the
   * stored result; one that finds it begun runs it again if it is idempotent, and otherwise settles uncertain.
   */
  step<Result>(
    key: string,
    options: { readonly idempotent: boolean; readonly descriptor?: unknown },
    run: (effectKey: string) => Promise<Result>,
  ): Promise<Result>;
}

/** The context of `reconcile`: which attempt is in question. */
export interface ReconcileContext extends CommonContext {
  readonly lostToken: number;
}

/** The context of `compensate`. */
export interface CompensateContext extends CommonContext {
  readonly endedAs: 'PERMANENT_FAILURE' | 'CANCELLED';
}
