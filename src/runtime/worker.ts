/**
 * A worker: claims as many jobs as it has free slots, renews what it holds, and settles each attempt once. It survives
 * whatever handlers and storage do; what it cannot store is offered again while it is trusted, and as a late report after.
 */
import { limits } from '../core/index.ts';
import type { ClaimRequest, Delivery, Settlement, Store } from '../store/store.ts';
import { Attempt, type AttemptHost } from './attempt.ts';
import type { Time } from './clock.ts';
import { type AnyDefinition, recordOf } from './definition.ts';
import { DefinitionChangedError } from './errors.ts';
import { reasonOf } from './reason.ts';

/** Where a worker tells what an operator should know. */
export interface Logger {
  debug(details: object, message: string): void;
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
}

export interface WorkerOptions {
  /** Jobs at one time, 1 to 500. Default 10. */
  readonly concurrency?: number;
  /** Only these queues. Default all. */
  readonly queues?: readonly string[];
  /** Length of a lease; it is renewed every third of it. Default 30 s. */
  readonly leaseMs?: number;
  /** How often to look for work that nothing announced. Default 1 s. */
  readonly pollMs?: number;
}

export interface WorkerStats {
  readonly worker: string;
  readonly running: number;
  /** Handlers that still run although their attempt is over. */
  readonly zombies: number;
  readonly claimed: number;
  readonly settled: number;
  readonly lost: number;
}

interface Pending {
  readonly attempt: Attempt;
  readonly settlement: Settlement;
}

/** Delay between tries when the storage fails: doubled from the first to the second, and spread. */
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 10_000;
/** The trust in a lease ends this much before the lease, since the answer of its claim took a while to come. */
const MARGIN = 0.1;
/** How soon a requested cancellation or a lost lease is noticed at the latest, however long the lease. */
const HEARTBEAT_MS_MAX = 1_000;

export class Worker {
  readonly name: string;
  readonly #store: Store;
  readonly #time: Time;
  readonly #log: Logger;
  readonly #random: () => number;
  readonly #newId: () => string;
  readonly #definitions: ReadonlyMap<string, AnyDefinition>;
  readonly #options: Required<Omit<WorkerOptions, 'queues'>> & { readonly queues: readonly string[] | null };
  readonly #attempts = new Set<Attempt>();
  #pending: Pending[] = [];
  #unanswered: ClaimRequest | null = null;
  #state: 'running' | 'stopping' | 'stopped' = 'running';
  #busy = false;
  #looking = true;
  #failures = 0;
  #cancelTimers = new Set<() => void>();
  #unsubscribe: () => void = () => undefined;
  #idle: (() => void)[] = [];
  #counts = { claimed: 0, settled: 0, lost: 0 };
  #lastBeat: number;
  /** Rejects when the worker may not start at all. */
  readonly started: Promise<void>;

  constructor(
    store: Store,
    definitions: readonly AnyDefinition[],
    options: WorkerOptions,
    given: {
      readonly time: Time;
      readonly log: Logger;
      readonly random: () => number;
      readonly newId: () => string;
    },
  ) {
    this.#store = store;
    this.#time = given.time;
    this.#log = given.log;
    this.#random = given.random;
    this.#newId = given.newId;
    this.#definitions = new Map(definitions.map((definition) => [definition.kind, definition]));
    this.#options = {
      concurrency: options.concurrency ?? 10,
      leaseMs: options.leaseMs ?? limits.leaseMsDefault,
      pollMs: options.pollMs ?? 1_000,
      queues: options.queues ?? null,
    };
    this.name = `worker-${given.newId()}`;
    this.#lastBeat = this.#time.monotonic();
    this.started = this.#start();
    // Whoever does not look at it must not be ended by it.
    this.started.catch(() => undefined);
  }

  stats(): WorkerStats {
    const zombies = [...this.#zombies].filter((attempt) => attempt.zombie).length;
    return { worker: this.name, running: this.#attempts.size, zombies, ...this.#counts };
  }

  /**
   * Claims nothing more, waits `graceMs` for handlers, tells the others to stop, settles what the contract says of their
   * silence, and keeps leases alive until the last answer. Resolves when nothing is held any more.
   */
  async stop(options: { readonly graceMs?: number } = {}): Promise<void> {
    if (this.#state === 'stopped') return;
    this.#state = 'stopping';
    const { graceMs = 30_000 } = options;
    const cancelGrace = this.#after(graceMs, () => {
      for (const attempt of this.#attempts) attempt.abort('shutdown');
      // A turn of grace for handlers that listen; then silence is an answer too.
      this.#after(50, () => {
        for (const attempt of this.#attempts) attempt.giveUp();
      });
    });
    this.#turn();
    if (this.#attempts.size > 0 || this.#busy) {
      await new Promise<void>((resolve) => {
        this.#idle.push(resolve);
      });
    }
    cancelGrace();
    this.#state = 'stopped';
    this.#unsubscribe();
    for (const cancel of this.#cancelTimers) cancel();
  }

  readonly #zombies = new Set<Attempt>();

  async #start(): Promise<void> {
    const definitions = [...this.#definitions.values()];
    const records = definitions.map(recordOf);
    const standings = await this.#store.register({ worker: this.name, definitions: records });
    if (this.#state !== 'running') return;
    const changed = definitions.filter((_, index) => standings[index] === 'changed');
    if (changed.length > 0) {
      this.#state = 'stopped';
      throw new DefinitionChangedError(changed.map(({ kind, revision }) => `${kind} revision ${revision}`));
    }
    for (const [index, standing] of standings.entries()) {
      const kind = definitions[index]?.kind;
      if (standing === 'incomparable')
        this.#log.warn({ kind }, 'its schema cannot be compared with the recorded one');
    }
    this.#unsubscribe = this.#store.subscribe(() => this.#wake());
    this.#beat();
    this.#poll();
    this.#turn();
  }

  #wake(): void {
    this.#looking = true;
    this.#turn();
  }

  /** A timer of this worker, taken back when it stops. */
  #after(waitMs: number, call: () => void): () => void {
    const cancel = this.#time.after(waitMs, () => {
      this.#cancelTimers.delete(cancel);
      call();
    });
    this.#cancelTimers.add(cancel);
    return () => {
      cancel();
      this.#cancelTimers.delete(cancel);
    };
  }

  #poll(): void {
    this.#after(this.#options.pollMs * (0.75 + 0.5 * this.#random()), () => {
      if (this.#state !== 'running') return;
      this.#wake();
      this.#poll();
    });
  }

  /** One settlement-and-claim at a time: slots that finish meanwhile go with the next. */
  #turn(): void {
    if (this.#busy || this.#state === 'stopped') return;
    const free = this.#options.concurrency - this.#attempts.size + this.#pending.length;
    const wish = this.#state === 'running' && this.#looking && free > 0 ? this.#claimRequest(free) : null;
    if (this.#pending.length === 0 && wish === null) {
      if (this.#attempts.size === 0) for (const idle of this.#idle.splice(0)) idle();
      return;
    }
    this.#busy = true;
    const batch = this.#pending.splice(0, limits.holdersBatchMax);
    const sent = { monotonic: this.#time.monotonic(), wall: this.#time.now() };
    this.#exchange(batch, wish, sent).then(
      () => {
        this.#failures = 0;
        this.#busy = false;
        this.#turn();
      },
      (error: unknown) => this.#retry(batch, error),
    );
  }

  async #exchange(
    batch: readonly Pending[],
    wish: ClaimRequest | null,
    sent: { readonly monotonic: number; readonly wall: number },
  ): Promise<void> {
    const { settled, claimed } =
      batch.length > 0
        ? await this.#store.settle(
            batch.map((one) => one.settlement),
            wish,
          )
        : { settled: [], claimed: wish === null ? [] : await this.#store.claim(wish) };
    for (const [index, one] of batch.entries()) {
      const verdict = settled[index];
      if (verdict === undefined) continue;
      if (verdict.ok) this.#counts.settled += 1;
      else if (verdict.refused === 'effect_not_committed') {
        // Success without the effect it requires is a failure that cannot be repaired any more.
        const report = 'succeeded without the effect the job requires';
        this.#pending.push({ ...one, settlement: { ...one.settlement, outcome: 'permanent', report } });
        continue;
      } else {
        this.#counts.lost += 1;
        this.#log.warn(
          { job: one.settlement.id, refused: verdict.refused },
          'a settlement was refused and kept as testimony',
        );
      }
      this.#release(one.attempt);
    }
    if (wish !== null) {
      this.#unanswered = null;
      this.#looking = claimed.length >= wish.max;
      this.#counts.claimed += claimed.length;
      for (const delivery of claimed) this.#begin(delivery, sent);
    }
  }

  /** The same request until it is answered: a claim whose answer was lost gives its deliveries again. */
  #claimRequest(free: number): ClaimRequest {
    this.#unanswered ??= {
      worker: this.name,
      leaseMs: this.#options.leaseMs,
      max: Math.min(free, limits.claimBatchMax),
      requestId: this.#newId(),
      definitions: [...this.#definitions.values()].map(({ kind, revision, idempotent }) => ({
        kind,
        revision,
        idempotent,
      })),
      queues: this.#options.queues,
      begin: true,
    };
    return this.#unanswered;
  }

  #begin(delivery: Delivery, sent: { readonly monotonic: number; readonly wall: number }): void {
    const definition = this.#definitions.get(delivery.job.submission.kind);
    if (definition === undefined) return;
    const host: AttemptHost = {
      store: this.#store,
      time: this.#time,
      worker: this.name,
      log: (message, details) => this.#log.info(details, message),
    };
    const attempt = new Attempt(delivery, definition, host, this.#trustFrom(sent));
    this.#attempts.add(attempt);
    attempt.onLate = (report) => this.#reportLate(attempt, report);
    attempt.ended
      .then((ended) => {
        if (attempt.zombie) this.#zombies.add(attempt);
        if (ended === 'decided') this.#release(attempt);
        else this.#pending.push({ attempt, settlement: this.#settlementOf(attempt, ended) });
        this.#turn();
      })
      .catch((error: unknown) =>
        this.#log.error({ error: reasonOf(error) }, 'an attempt ended in an unforeseen way'),
      );
    attempt.start();
  }

  #settlementOf(attempt: Attempt, report: Omit<Settlement, 'id' | 'token' | 'worker'>): Settlement {
    const { backoffMaxMs } = attempt.definition;
    const retries = report.outcome === 'retryable' || report.outcome === 'uncertain';
    // Spread: jobs that failed together must not come back together.
    const jitterMs = retries
      ? Math.floor(this.#random() * Math.min(backoffMaxMs, attempt.definition.backoffBaseMs) * 0.5)
      : 0;
    return { ...attempt.holder, worker: this.name, ...report, jitterMs };
  }

  #trustFrom(sent: { readonly monotonic: number; readonly wall: number }): {
    monotonic: number;
    wall: number;
  } {
    const trustedMs = this.#options.leaseMs * (1 - MARGIN);
    return { monotonic: sent.monotonic + trustedMs, wall: sent.wall + trustedMs };
  }

  #release(attempt: Attempt): void {
    this.#attempts.delete(attempt);
    this.#looking = true;
  }

  /** Whatever the handler says after its attempt is over is testimony, and may decide an UNCERTAIN job. */
  #reportLate(attempt: Attempt, report: Omit<Settlement, 'id' | 'token' | 'worker'>): void {
    this.#zombies.delete(attempt);
    if (this.#state === 'stopped') return;
    const settlement: Settlement = { ...attempt.holder, worker: this.name, ...report };
    this.#log.warn(
      { job: settlement.id },
      'a handler ended after its attempt was over; its report is kept as testimony',
    );
    this.#store.settle([settlement]).catch((error: unknown) => {
      this.#log.error({ job: settlement.id, error: reasonOf(error) }, 'a late report could not be stored');
    });
  }

  #retry(batch: readonly Pending[], error: unknown): void {
    this.#pending.unshift(...batch);
    this.#failures += 1;
    const waitMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(this.#failures, 20));
    // Said when it begins and then more and more seldom: a full disk must not fill it with log lines.
    if (Number.isInteger(Math.log2(this.#failures))) {
      this.#log.error({ failures: this.#failures, error: reasonOf(error) }, 'the store cannot be reached');
    }
    this.#after(waitMs * (0.5 + 0.5 * this.#random()), () => {
      this.#busy = false;
      this.#turn();
    });
  }

  /** Renews all leases in one call; a round that fails proves nothing, and each attempt trusts its lease for itself. */
  #beat(): void {
    // A round may still be under way when the last thing held was given back.
    if (this.#state === 'stopped') return;
    const everyMs = Math.min(this.#options.leaseMs / 3, HEARTBEAT_MS_MAX);
    this.#after(everyMs, () => {
      const now = this.#time.monotonic();
      const lateMs = Math.round(now - this.#lastBeat - everyMs);
      this.#lastBeat = now;
      if (lateMs > everyMs) {
        this.#log.warn(
          { blockedMs: lateMs },
          'the event loop was blocked: leases could not be renewed meanwhile',
        );
      }
      this.#renew().then(
        () => this.#beat(),
        () => this.#beat(),
      );
    });
  }

  async #renew(): Promise<void> {
    const attempts = [...this.#attempts];
    const sent = { monotonic: this.#time.monotonic(), wall: this.#time.now() };
    try {
      const extensions = attempts.map((one) => ({ ...one.holder, extendMs: this.#options.leaseMs }));
      const verdicts = extensions.length === 0 ? [] : await this.#store.extend(extensions);
      for (const [index, verdict] of verdicts.entries()) {
        const attempt = attempts[index];
        if (attempt === undefined || !this.#attempts.has(attempt)) continue;
        if (verdict.status === 'extended') {
          attempt.trustedUntil = this.#trustFrom(sent);
          if (verdict.job.cancelRequested) attempt.abort('cancel_requested');
        } else if (verdict.status === 'lost' && verdict.refused !== 'already_settled') {
          this.#counts.lost += 1;
          attempt.abort('lease_lost');
        }
      }
      await this.#store.lapse(limits.lapsePageMax);
    } catch (error) {
      this.#log.debug(
        { error: reasonOf(error) },
        'a heartbeat round failed; leases are trusted until they end',
      );
    }
    for (const attempt of this.#attempts) if (!attempt.isTrusted()) attempt.abort('lease_lost');
  }
}
