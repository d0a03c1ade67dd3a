/** The door of Custody for programs: open a store, enqueue by definition, work, inspect and operate. */
import { randomUUID } from 'node:crypto';
import type { JobRequest } from '../core/index.ts';
import { type Job, limits, STATE, STATE_NAMES, stateIsTerminal } from '../core/index.ts';
import { type Verification, verifyJob } from '../evidence/index.ts';
import { InvalidInputError } from '../store/errors.ts';
import { openMemoryStore } from '../store/memory/index.ts';
import type { EnqueueVerdict, JobView, Store } from '../store/store.ts';
import { systemTime, type Time } from './clock.ts';
import type { AnyDefinition, JobDefinition, PayloadOf } from './definition.ts';
import { type Duration, durationMs } from './duration.ts';
import {
  CapacityExceededError,
  DeadlinePassedError,
  IdempotencyConflictError,
  JobFailedError,
  PayloadRefusedError,
  UnsupportedStoreError,
  WaitTimeoutError,
} from './errors.ts';
import { refuseUnknown } from './option-check.ts';
import { validate } from './payload.ts';
import { reasonOf } from './reason.ts';
import type { StandardSchema } from './standard-schema.ts';
import { type Logger, Worker, type WorkerOptions } from './worker.ts';

/** What one job may be given beside its payload. */
export interface EnqueueOptions {
  readonly idempotencyKey?: string;
  /** A tick, or a Date. */
  readonly deadline?: number | Date;
  readonly startAt?: number | Date;
  readonly delay?: Duration;
  readonly priority?: number;
  readonly queue?: string;
  readonly orderingKey?: string | null;
}

/** One member of a bulk enqueue. */
export interface EnqueueItem {
  readonly payload: unknown;
  readonly options?: EnqueueOptions;
}

const ENQUEUE_OPTIONS: readonly (keyof EnqueueOptions)[] = [
  'idempotencyKey',
  'deadline',
  'startAt',
  'delay',
  'priority',
  'queue',
  'orderingKey',
];
const WORK_OPTIONS: readonly (keyof WorkerOptions)[] = [
  'concurrency',
  'queues',
  'leaseMs',
  'pollMs',
  'retention',
];

export interface Enqueued {
  readonly status: 'created' | 'duplicate';
  readonly id: number;
  /** Null when only the key of a pruned job is left. */
  readonly job: Job | null;
  /** Options that differ from the existing job's and had no effect. */
  readonly ignored: readonly string[];
}

export interface CustodyOptions {
  readonly time?: Time;
  readonly logger?: Logger;
  /** From 0 to 1; spreads polls and retries. */
  readonly random?: () => number;
  readonly randomId?: () => string;
}

/** How often a waiter looks for itself, in case no wake came. */
const WAIT_LOOK_MS = 1_000;

const SILENT: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

export class Custody {
  /** Everything else a store can do: inspect and operate verbs, snapshots, retention. */
  readonly store: Store;
  readonly #time: Time;
  readonly #logger: Logger;
  readonly #random: () => number;
  readonly #randomId: () => string;
  readonly #workers = new Set<Worker>();

  constructor(store: Store, options: CustodyOptions = {}) {
    this.store = store;
    this.#time = options.time ?? systemTime;
    this.#logger = options.logger ?? SILENT;
    this.#randomId = options.randomId ?? randomUUID;
    this.#random = options.random ?? spread(this.#randomId());
  }

  /**
   * Admits one job. Rejects with `PayloadRefusedError`, `IdempotencyConflictError`, `DeadlinePassedError` or
   * `CapacityExceededError`, and then nothing was stored.
   */
  async enqueue<Schema extends StandardSchema, Result>(
    definition: JobDefinition<Schema, Result>,
    payload: PayloadOf<JobDefinition<Schema, Result>>,
    options: EnqueueOptions = {},
  ): Promise<Enqueued> {
    const [enqueued] = await this.enqueueMany(definition, [{ payload, options }]);
    if (enqueued === undefined) throw new Error('one job was enqueued without an answer');
    return enqueued;
  }

  /** Admits all jobs or none, in one commit, ids in the order given; at most 10,000. */
  async enqueueMany(definition: AnyDefinition, items: readonly EnqueueItem[]): Promise<readonly Enqueued[]> {
    const requests = await Promise.all(items.map((item) => this.#request(definition, item)));
    const verdicts = await this.store
      .enqueue(requests, { atomic: true })
      .catch((error: unknown) => Promise.reject(payloadError(error, definition)));
    const refused = verdicts.findIndex((verdict) => verdict.status === 'refused');
    const culprit = verdicts[refused];
    if (culprit?.status === 'refused') throw refusalError(culprit, requests[refused]);
    return verdicts.flatMap((verdict) =>
      verdict.status === 'created' || verdict.status === 'duplicate' ? [enqueuedOf(verdict)] : [],
    );
  }

  async #request(definition: AnyDefinition, item: EnqueueItem): Promise<JobRequest> {
    const { kind, revision, idempotent, options: declared } = definition;
    const options = item.options ?? {};
    refuseUnknown(options, ENQUEUE_OPTIONS, 'enqueue');
    const validated = await validate(definition, item.payload).catch((error: unknown) => {
      throw new PayloadRefusedError(kind, '$', `its schema threw: ${reasonOf(error)}`);
    });
    if (!validated.ok) throw new PayloadRefusedError(kind, validated.path, validated.problem);
    const own =
      options.orderingKey === undefined ? declared.orderingKey?.(validated.payload) : options.orderingKey;
    const deadline = tickOf(options.deadline, 'deadline');
    const { deadlineAfterMs } = definition;
    return {
      kind,
      revision,
      // What the schema took, not what it made of it: the handler's worker validates again, perhaps by a newer revision.
      payload: item.payload,
      idempotent,
      queue: options.queue ?? declared.queue ?? null,
      orderingKey: own ?? null,
      idempotencyKey: options.idempotencyKey ?? null,
      requestId: this.#randomId(),
      priority: options.priority ?? declared.priority ?? null,
      startAt: tickOf(options.startAt, 'startAt'),
      delayMs: options.delay === undefined ? null : durationMs(options.delay, 'delay', 0, limits.tickMax),
      deadline: deadline ?? (deadlineAfterMs === null ? null : this.#time.now() + deadlineAfterMs),
      maxAttempts: declared.maxAttempts ?? null,
      backoffBaseMs: definition.backoffBaseMs,
      backoffMaxMs: definition.backoffMaxMs,
      reconcileAfterMs: definition.reconcileAfterMs,
      acceptLateReports: declared.acceptLateReports ?? null,
      reconciles: declared.reconcile !== undefined,
      compensates: declared.compensate !== undefined,
      requiresEffect: declared.requiresEffect ?? null,
      recurrence: declared.recurrence ?? null,
    };
  }

  /** Starts a worker for these definitions; `worker.started` rejects when it may not start. */
  work(definitions: readonly AnyDefinition[], options: WorkerOptions = {}): Worker {
    checkWork(definitions, options);
    const given = {
      time: this.#time,
      log: this.#logger,
      random: this.#random,
      newId: this.#randomId,
    };
    const worker = new Worker(this.store, definitions, options, given);
    this.#workers.add(worker);
    return worker;
  }

  /**
   * Waits for a job to end and answers its result. Rejects with `JobFailedError` when it ended otherwise, and with
   * `WaitTimeoutError` when `timeoutMs` is over first; an aborted `signal` rejects with its reason. The job goes on.
   */
  async waitFor(
    id: number,
    options: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<unknown> {
    const { timeoutMs = limits.leaseMsMax, signal } = options;
    durationMs(timeoutMs, 'timeoutMs', 0, limits.tickMax);
    let over = false;
    let wake: () => void = () => undefined;
    const unsubscribe = this.store.subscribe(() => wake());
    const cancel = this.#time.after(timeoutMs, () => {
      over = true;
      wake();
    });
    const aborted = (): void => wake();
    signal?.addEventListener('abort', aborted);
    try {
      for (;;) {
        signal?.throwIfAborted();
        const woken = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const view = await this.store.get(id);
        if (view === null) throw new InvalidInputError('id', `no job ${id} is stored`);
        if (stateIsTerminal(view.job.state)) return resultOf(view);
        if (over) throw new WaitTimeoutError(id);
        // A wake is a hint and may be lost.
        const stopLooking = this.#time.after(WAIT_LOOK_MS, () => wake());
        await woken;
        stopLooking();
      }
    } finally {
      unsubscribe();
      signal?.removeEventListener('abort', aborted);
      cancel();
    }
  }

  /** Verifies the evidence of one job, or answers null when there is no such job. */
  async verify(id: number): Promise<Verification | null> {
    const evidence = await this.store.evidence(id);
    return evidence === null ? null : verifyJob(evidence);
  }

  /** Stops the workers of this object, then closes the store. */
  async close(options: { readonly graceMs?: number } = {}): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop(options)));
    await this.store.close();
  }
}

/**
 * Opens Custody on a store: `'memory:'`, `'sqlite:path/to/jobs.db'`, or a store of your own.
 *
 * @example
 * ```ts
 * const custody = await openCustody('sqlite:jobs.db');
 * ```
 */
export async function openCustody(where: string | Store, options: CustodyOptions = {}): Promise<Custody> {
  return new Custody(typeof where === 'string' ? await openStore(where, options) : where, options);
}

async function openStore(url: string, options: CustodyOptions): Promise<Store> {
  const time = options.time ?? systemTime;
  const given = {
    clock: () => time.now(),
    clockName: 'unix',
    randomId: options.randomId ?? randomUUID,
  } as const;
  if (url === 'memory:') return openMemoryStore(given);
  if (url.startsWith('sqlite:')) {
    // Loaded when it is asked for: a program on another store needs no driver.
    const { openSqliteStore } = await import('../store/sqlite/index.ts');
    return openSqliteStore(url.slice('sqlite:'.length), given);
  }
  throw new UnsupportedStoreError(url);
}

/** The store names the place of what does not survive JSON; programs are told by the error they know for payloads. */
function payloadError(error: unknown, definition: AnyDefinition): unknown {
  if (!(error instanceof InvalidInputError) || !/^jobs\[\d+\]\.payload$/.test(error.field)) return error;
  const [, problem = 'it does not survive JSON', path = '$'] =
    /^jobs\[\d+\]\.payload: (.*) at (\$.*)$/s.exec(error.message) ?? [];
  return new PayloadRefusedError(definition.kind, path, problem);
}

function checkWork(definitions: readonly AnyDefinition[], options: WorkerOptions): void {
  refuseUnknown(options, WORK_OPTIONS, 'work');
  const { concurrency, leaseMs, pollMs } = options;
  if (concurrency !== undefined) durationMs(concurrency, 'concurrency', 1, limits.claimBatchMax);
  if (leaseMs !== undefined) durationMs(leaseMs, 'leaseMs', 100, limits.leaseMsMax);
  if (pollMs !== undefined) durationMs(pollMs, 'pollMs', 10, limits.leaseMsMax);
  if (definitions.length === 0)
    throw new InvalidInputError('definitions', 'must hold at least one definition');
  const kinds = new Set(definitions.map(({ kind }) => kind));
  if (kinds.size < definitions.length) throw new InvalidInputError('definitions', 'must hold each kind once');
}

function enqueuedOf(verdict: Extract<EnqueueVerdict, { status: 'created' | 'duplicate' }>): Enqueued {
  const { status, id, job } = verdict;
  return { status, id, job, ignored: verdict.status === 'duplicate' ? verdict.ignored : [] };
}

function refusalError(
  refused: Extract<EnqueueVerdict, { status: 'refused' }>,
  request: JobRequest | undefined,
): Error {
  switch (refused.refused) {
    case 'conflict':
      return new IdempotencyConflictError(request?.idempotencyKey ?? '', refused.id);
    case 'deadline_passed':
      return new DeadlinePassedError();
    case 'capacity_exceeded':
      return new CapacityExceededError(request?.queue ?? 'default');
  }
}

function tickOf(when: number | Date | undefined, field: string): number | null {
  if (when === undefined) return null;
  const tick = when instanceof Date ? when.getTime() : when;
  if (typeof tick === 'number' && Number.isSafeInteger(tick) && tick >= 0) return tick;
  throw new InvalidInputError(field, 'must be a valid Date or a whole number of milliseconds since 1970');
}

function resultOf(view: JobView): unknown {
  if (view.job.state !== STATE.SUCCEEDED) {
    throw new JobFailedError(view.job.id, STATE_NAMES[view.job.state] ?? '', view.report);
  }
  return view.report === null ? null : (JSON.parse(view.report) as unknown);
}

/** Numbers from 0 to 1 that spread timers; nothing depends on them but when polls and retries happen. */
function spread(seed: string): () => number {
  let state = Buffer.from(seed).reduce((sum, byte) => (sum * 31 + byte) >>> 0, 7);
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
