/**
 * A worker: claims as many jobs as it has free slots, renews what it holds, and settles each attempt once. It survives
 * whatever handlers and storage do; what it cannot store is offered again while it is trusted, and as a late report after.
 */
import { type DefinitionRecord, type DefinitionStanding, limits, type Refusal } from '../core/index.ts';
import { InvalidInputError, StoreClosedError, StoreSealedError } from '../store/errors.ts';
import type { ClaimRequest, Delivery, Settlement, Store, Verdict } from '../store/store.ts';
import { Attempt, type AttemptHost } from './attempt.ts';
import type { Time } from './clock.ts';
import { type AnyDefinition, recordOf } from './definition.ts';
import { DefinitionChangedError } from './errors.ts';
import { isolated, type Logger } from './log.ts';
import { type Retention, startMaintenance } from './maintenance.ts';
import { reasonOf } from './reason.ts';

export type { Logger };

export interface WorkerOptions {
  /** Jobs at one time, 1 to 500. Default 10. */
  readonly concurrency?: number;
  /** Only these queues. Default all. */
  readonly queues?: readonly string[];
  /** Length of a lease; it is renewed every third of it. Default 30 s. */
  readonly leaseMs?: number;
  /** How often to look for work that nothing announced. Default 1 s. */
  readonly pollMs?: number;
  /** What this worker prunes, once an hour; null for nothing. Default: succeeded and cancelled jobs after 7 days. */
  readonly retention?: Retention | null;
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

interface Instant {
  readonly monotonic: number;
  readonly wall: number;
}

/** How far a handler says it is. */
export interface Progress {
  readonly id: number;
  readonly value: unknown;
}

/** Delay between tries when the storage fails: doubled from the first to the second, and spread. */
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 10_000;
/** The trust in a lease ends this much before the lease, since the answer of its claim took a while to come. */
const MARGIN = 0.1;
/** How soon a requested cancellation or a lost lease is noticed at the latest, however long the lease. */
const HEARTBEAT_MS_MAX = 1_000;
/** How long after its lease a settlement is still offered, as a late report, to a store that cannot be reached. */
const LATE_REPORT_MS = 600_000;

export class Worker {
  readonly name: string;
  readonly #store: Store;
  readonly #time: Time;
  readonly #log: Logger;
  readonly #random: () => number;
  readonly #newId: () => string;
  readonly #definitions: ReadonlyMap<string, AnyDefinition>;
  readonly #options: Required<Omit<WorkerOptions, 'queues' | 'retention'>> & {
    readonly queues: readonly string[] | null;
    readonly retention: Retention | null;
  };
  readonly #attempts = new Set<Attempt>();
  #pending: Pending[] = [];
  /** A claim that was sent and not answered, with when it was sent first: its leases may run since then. */
  #unanswered: { readonly request: ClaimRequest; readonly sent: Instant } | null = null;
  #state: 'running' | 'stopping' | 'stopped' = 'running';
  #busy = false;
  #looking = true;
  #failures = 0;
  #cancelTimers = new Set<() => void>();
  #unsubscribe: () => void = () => undefined;
  #idle: (() => void)[] = [];
  #counts = { claimed: 0, settled: 0, lost: 0 };
  #cancelWatch: () => void = () => undefined;
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
    this.#log = isolated(given.log);
    this.#random = given.random;
    this.#newId = given.newId;
    this.#definitions = new Map(definitions.map((definition) => [definition.kind, definition]));
    this.#options = {
      concurrency: options.concurrency ?? 10,
      leaseMs: options.leaseMs ?? limits.leaseMsDefault,
      pollMs: options.pollMs ?? 1_000,
      queues: options.queues ?? null,
      retention: options.retention === undefined ? {} : options.retention,
    };
    this.name = `worker-${given.newId()}`;
    this.started = this.#start();
    // Whoever does not look at it must not be ended by it, and yet learn of it.
    this.started.catch((error: unknown) => {
      this.#log.error({ worker: this.name, error: reasonOf(error) }, 'the worker does not start');
    });
  }

  stats(): WorkerStats {
    return {
      worker: this.name,
      running: this.#attempts.size,
      zombies: this.#zombies.size,
      ...this.#counts,
    };
  }

  /** What running handlers last told of their progress; those that told nothing are left out. */
  progress(): readonly Progress[] {
    return [...this.#attempts].flatMap(({ holder, told }) =>
      told === null ? [] : [{ id: holder.id, value: told }],
    );
  }

  /**
   * Claims nothing more, waits `graceMs` for handlers, tells the others to stop, settles what the contract says of their
   * silence, and keeps leases alive until the last answer. Resolves when nothing is held any more.
   */
  async stop(options: { readonly graceMs?: number } = {}): Promise<void> {
    if (this.#state === 'stopped') return;
    this.#state = 'stopping';
    for (const tell of this.#onStop) tell();
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
  readonly #onStop = new Set<() => void>();

  async #start(): Promise<void> {
    const definitions = [...this.#definitions.values()];
    const records = definitions.map(recordOf);
    const standings = await this.#registered(records);
    // Stopped while it asked: it must not begin now.
    if (standings === null || this.#state !== 'running') return;
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
    const { retention } = this.#options;
    const isRunning = (): boolean => this.#state !== 'stopped';
    const host = { store: this.#store, worker: this.name, log: this.#log, random: this.#random, isRunning };
    startMaintenance({ ...host, after: (waitMs, call) => this.#after(waitMs, call) }, retention);
    this.#turn();
  }

  /** Storage that is not there yet is waited for; null when the worker was stopped meanwhile. */
  async #registered(definitions: readonly DefinitionRecord[]): Promise<readonly DefinitionStanding[] | null> {
    for (let failures = 1; this.#state === 'running'; failures += 1) {
      try {
        return await this.#store.register({ worker: this.name, definitions });
      } catch (error) {
        if (isFinal(error)) throw error;
        this.#tellFailure(failures, error);
        await new Promise<void>((resolve) => {
          this.#onStop.add(resolve);
          this.#after(this.#backoffMs(failures), resolve);
        });
      }
    }
    return null;
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
    // As many handlers that do not stop as there are slots are borne; each one more holds a slot until it ends.
    const deaf = Math.max(0, this.#zombies.size - this.#options.concurrency);
    const free = this.#options.concurrency - this.#attempts.size + this.#pending.length - deaf;
    const wanted = this.#state === 'running' && this.#looking && free > 0;
    // An unanswered claim is asked again also when stopping: what it gave must be given back.
    const wish = wanted || this.#unanswered !== null ? this.#claimRequest(free) : null;
    if (this.#pending.length === 0 && wish === null) {
      if (this.#attempts.size === 0) for (const idle of this.#idle.splice(0)) idle();
      return;
    }
    this.#busy = true;
    const batch = this.#pending.splice(0, limits.holdersBatchMax);
    const sent = this.#instant();
    this.#exchange(batch, wish, sent).then(
      () => {
        this.#failures = 0;
        this.#busy = false;
        this.#turn();
      },
      (error: unknown) => {
        if (error instanceof InvalidInputError && batch.length > 0) this.#setApart(batch, error);
        else this.#retry(batch, error);
      },
    );
  }

  /** One member that the store cannot read must not hold back the others: each is offered alone, and that one given up. */
  #setApart(batch: readonly Pending[], error: InvalidInputError): void {
    const offered = batch.map(async (one) => {
      try {
        const { settled } = await this.#store.settle([one.settlement]);
        this.#answer(one, settled[0]);
      } catch (failure) {
        if (failure instanceof InvalidInputError) this.#giveUp(one, error);
        else this.#pending.push(one);
      }
    });
    void Promise.all(offered).then(() => {
      this.#busy = false;
      this.#turn();
    });
  }

  /** Nothing more can be done for a settlement: its job lapses, and its contract says what becomes of it. */
  #giveUp({ attempt, settlement }: Pending, error: unknown): void {
    this.#counts.lost += 1;
    const details = { job: settlement.id, outcome: settlement.outcome, error: reasonOf(error) };
    this.#log.error(details, 'a settlement could not be stored and was given up');
    this.#release(attempt);
  }

  #answer(one: Pending, verdict: Verdict | undefined): void {
    if (verdict === undefined) return;
    if (verdict.ok) {
      this.#counts.settled += 1;
      this.#release(one.attempt);
      return;
    }
    const instead = insteadOf(one.settlement, verdict.refused);
    if (instead !== null) {
      this.#pending.push({ ...one, settlement: instead });
      return;
    }
    this.#counts.lost += 1;
    this.#log.warn(
      { job: one.settlement.id, refused: verdict.refused },
      'a settlement was refused and kept as testimony',
    );
    this.#release(one.attempt);
  }

  async #exchange(batch: readonly Pending[], wish: ClaimRequest | null, sent: Instant): Promise<void> {
    const { settled, claimed } =
      batch.length > 0
        ? await this.#store.settle(
            batch.map((one) => one.settlement),
            wish,
          )
        : { settled: [], claimed: wish === null ? [] : await this.#store.claim(wish) };
    for (const [index, one] of batch.entries()) this.#answer(one, settled[index]);
    if (wish !== null) {
      const since = this.#unanswered?.sent ?? sent;
      this.#unanswered = null;
      this.#looking = claimed.length >= wish.max;
      this.#counts.claimed += claimed.length;
      for (const delivery of claimed) this.#begin(delivery, since);
      this.#watch();
    }
  }

  /** The same request until it is answered: a claim whose answer was lost gives its deliveries again. */
  #claimRequest(free: number): ClaimRequest {
    if (this.#unanswered !== null) return this.#unanswered.request;
    const request: ClaimRequest = {
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
    this.#unanswered = { request, sent: this.#instant() };
    return request;
  }

  #instant(): Instant {
    return { monotonic: this.#time.monotonic(), wall: this.#time.now() };
  }

  #begin(delivery: Delivery, sent: Instant): void {
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
        if (attempt.zombie) this.#tellZombie(attempt);
        if (ended === 'decided') this.#release(attempt);
        else this.#pending.push({ attempt, settlement: this.#settlementOf(attempt, ended) });
        this.#turn();
      })
      .catch((error: unknown) =>
        this.#log.error({ error: reasonOf(error) }, 'an attempt ended in an unforeseen way'),
      );
    // Not begun when the worker stops: its handler must not be called any more.
    if (this.#state === 'running') attempt.start();
    else attempt.giveUp();
  }

  #tellZombie(attempt: Attempt): void {
    this.#zombies.add(attempt);
    const { kind } = attempt.definition;
    const zombies = this.#zombies.size;
    this.#log.warn({ ...attempt.holder, kind, zombies }, 'a handler goes on although its attempt is over');
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

  #trustFrom(sent: Instant): Instant {
    const trustedMs = this.#options.leaseMs * (1 - MARGIN);
    return { monotonic: sent.monotonic + trustedMs, wall: sent.wall + trustedMs };
  }

  #release(attempt: Attempt): void {
    this.#attempts.delete(attempt);
    this.#looking = true;
  }

  /** Whatever the handler says after its attempt is over is testimony, and may decide an UNCERTAIN job. */
  #reportLate(attempt: Attempt, report: Omit<Settlement, 'id' | 'token' | 'worker'> | null): void {
    this.#zombies.delete(attempt);
    this.#turn();
    if (this.#state === 'stopped' || report === null) return;
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
    const hopeless = batch.filter((one) => isFinal(error) || this.#isTooLate(one.attempt.trustedUntil));
    this.#pending.unshift(...batch.filter((one) => !hopeless.includes(one)));
    for (const one of hopeless) this.#giveUp(one, error);
    const { sent } = this.#unanswered ?? {};
    // What that claim may have given has lapsed by now.
    if (sent !== undefined && (isFinal(error) || this.#isTooLate(this.#trustFrom(sent))))
      this.#unanswered = null;
    this.#failures += 1;
    this.#tellFailure(this.#failures, error);
    this.#after(this.#backoffMs(this.#failures), () => {
      this.#busy = false;
      this.#turn();
    });
  }

  /** While stopping, nobody waits for a store beyond the leases that are held. */
  #isTooLate(trusted: Instant): boolean {
    const spareMs = this.#state === 'running' ? LATE_REPORT_MS : 0;
    return this.#time.monotonic() >= trusted.monotonic + spareMs;
  }

  #backoffMs(failures: number): number {
    const waitMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(failures, 20));
    return waitMs * (0.5 + 0.5 * this.#random());
  }

  /** Said when it begins and then more and more seldom: a full disk must not fill it with log lines. */
  #tellFailure(failures: number, error: unknown): void {
    if (!Number.isInteger(Math.log2(failures))) return;
    this.#log.error({ failures, error: reasonOf(error) }, 'the store cannot be reached');
  }

  /** Ends the trust in a lease when its time is over, whether or not a heartbeat is still waiting for its answer. */
  #watch(): void {
    this.#cancelWatch();
    const held = [...this.#attempts].filter((attempt) => !attempt.isOver);
    if (held.length === 0) return;
    const now = this.#time.monotonic();
    const leftMs = Math.min(...held.map(({ trustedUntil }) => trustedUntil.monotonic - now));
    this.#cancelWatch = this.#after(Math.max(1, Math.ceil(leftMs)), () => {
      this.#distrust();
      this.#watch();
    });
  }

  #distrust(): void {
    for (const attempt of this.#attempts) if (!attempt.isTrusted()) attempt.abort('lease_lost');
  }

  /** Renews all leases in one call; a round that fails proves nothing, and each attempt trusts its lease for itself. */
  #beat(): void {
    if (this.#state === 'stopped') return;
    const everyMs = Math.min(this.#options.leaseMs / 3, HEARTBEAT_MS_MAX);
    const due = this.#time.monotonic() + everyMs;
    this.#after(everyMs, () => {
      const blockedMs = Math.round(this.#time.monotonic() - due);
      if (blockedMs > everyMs) {
        const kinds = [...new Set([...this.#attempts].map(({ definition }) => definition.kind))];
        this.#log.warn(
          { blockedMs, kinds },
          'the event loop was blocked: leases could not be renewed meanwhile',
        );
      }
      // After a gap, also one the machine slept through, nothing is believed before it was looked at.
      this.#distrust();
      this.#renew().then(
        () => this.#beat(),
        () => this.#beat(),
      );
    });
  }

  async #renew(): Promise<void> {
    const attempts = [...this.#attempts];
    if (attempts.length === 0) return;
    const sent = this.#instant();
    try {
      const extensions = attempts.map((one) => ({ ...one.holder, extendMs: this.#options.leaseMs }));
      for (const [index, verdict] of (await this.#store.extend(extensions)).entries()) {
        const attempt = attempts[index];
        if (attempt === undefined || !this.#attempts.has(attempt)) continue;
        if (verdict.status === 'extended') {
          attempt.trustedUntil = this.#trustFrom(sent);
          if (verdict.job.cancelRequested) attempt.abort('cancel_requested');
        } else if (verdict.status === 'lost' && verdict.refused !== 'already_settled' && !attempt.isOver) {
          this.#counts.lost += 1;
          attempt.abort('lease_lost');
        }
      }
      this.#watch();
    } catch (error) {
      this.#log.debug(
        { error: reasonOf(error) },
        'a heartbeat round failed; leases are trusted until they end',
      );
    }
    this.#distrust();
  }
}

/** Errors after which the same call can never succeed. */
function isFinal(error: unknown): boolean {
  return (
    error instanceof InvalidInputError ||
    error instanceof StoreClosedError ||
    error instanceof StoreSealedError
  );
}

/** What is settled when a report may not stand as it is; null when it was refused for good. */
function insteadOf(settlement: Settlement, refused: Refusal): Settlement | null {
  if (refused === 'effect_not_committed') {
    // Success without the effect it requires is a failure that cannot be repaired any more.
    return { ...settlement, outcome: 'permanent', report: 'succeeded without the effect the job requires' };
  }
  // A snooze that ends before it begins: start again at once.
  if (refused === 'tick_overflow' && settlement.outcome === 'snoozed') {
    return { ...settlement, outcome: 'interrupted', until: null };
  }
  return null;
}
