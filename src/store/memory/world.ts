/** The state of one memory store and the only way to change it: all of it or nothing, by one clock rule. */
import { cutLease, type DefinitionRecord, type Job, limits, stateIsTerminal } from '../../core/index.ts';
import { Engine } from '../engine/engine.ts';
import { tellAll } from '../engine/wake.ts';
import { InTransactionError, NumbersExhaustedError, StoreClosedError, StoreSealedError } from '../errors.ts';
import { readClock } from '../input.ts';
import type { EffectPlace, EffectRow, KeyRow, Picker, QueueRow, Row, Session } from '../session.ts';
import type { Act, ApplicationState, ClaimRequest, Testimony, Wake } from '../store.ts';
import { ClaimIndex, type Route } from './claim-index.ts';
import { effectRowKey, Tables } from './tables.ts';

/** What a memory store is given; it reads no clock and draws no chance of its own. */
export interface MemoryStoreOptions {
  /** Milliseconds, whole. */
  readonly clock: () => number;
  /** `simulated` snapshots do not restore into real stores. */
  readonly clockName: 'unix' | 'simulated';
  /** A random id of 1 to 64 bytes, never the same twice. */
  readonly randomId: () => string;
  /** How long idempotency keys are kept after their job ended, default 30 days. */
  readonly keepKeysForMs?: number;
  /** The program's own JSON state at the start, default `{}`. */
  readonly application?: ApplicationState;
}

/** Tables, the index over them and who listens. */
export class World {
  readonly options: MemoryStoreOptions;
  readonly keepKeysForMs: number;
  readonly tables: Tables = new Tables();
  readonly index: ClaimIndex = new ClaimIndex((id) => this.tables.rows.get(id));
  /** One object per subscription, so that one listener may subscribe twice and take back one. */
  readonly wakes: Set<{ readonly wake: Wake }> = new Set();
  application: ApplicationState;
  closed = false;
  #inTransaction = false;
  #woken = new Set<string>();

  constructor(options: MemoryStoreOptions, application: ApplicationState) {
    this.options = options;
    this.keepKeysForMs = options.keepKeysForMs ?? limits.keepKeysForMsDefault;
    this.application = application;
  }

  assertOpen(): void {
    if (this.closed) throw new StoreClosedError();
    if (this.#inTransaction) throw new InTransactionError();
  }

  /** Runs a changing verb: all of it or nothing. Nothing can come between, since `work` is synchronous. */
  atomically<Value>(work: (engine: Engine) => Value): Value {
    this.assertOpen();
    if (this.tables.sealedTo !== null) throw new StoreSealedError(this.tables.sealedTo);
    this.#inTransaction = true;
    this.tables.begin();
    try {
      const value = work(new Engine(this.#openSession()));
      this.tables.commit();
      return value;
    } catch (error) {
      this.tables.rollback();
      this.index.rebuild(this.tables.rows.values());
      this.#woken.clear();
      throw error;
    } finally {
      this.#inTransaction = false;
    }
  }

  /**
   * Tells listeners of queues with new work, after the commit and apart from it: what they throw or call is theirs and
   * disturbs nobody.
   */
  wake(): void {
    if (this.#woken.size === 0 || this.wakes.size === 0) {
      this.#woken.clear();
      return;
    }
    const queues = [...this.#woken];
    this.#woken.clear();
    queueMicrotask(() => tellAll([...this.wakes], queues));
  }

  /**
   * The clock, not below the tick of the last commit. One found further behind than the tolerance is followed: the
   * future it had been in is not a rule, so leases reckoned from it are cut, and every job it had touched records that.
   */
  #openSession(): MemorySession {
    const read = readClock(this.options.clock);
    const { lastTick } = this.tables.counters;
    const held = read < lastTick && lastTick - read <= limits.clockToleranceMs;
    const now = held ? lastTick : read;
    const session = new MemorySession(this, now, (queue) => this.#woken.add(queue));
    this.tables.counters = { ...this.tables.counters, lastTick: now };
    if (now < lastTick) this.#followClock(new Engine(session));
    return session;
  }

  #followClock(engine: Engine): void {
    for (const row of [...this.tables.rows.values()]) {
      if (stateIsTerminal(row.job.state)) continue;
      const cut = { ...row, job: cutLease(row.job, engine.now) };
      engine.session.write(row, cut);
      engine.lapseRow(cut);
    }
  }
}

/** One transaction of the memory store. */
class MemorySession implements Session {
  readonly now: number;
  readonly keepKeysForMs: number;
  readonly #world: World;
  readonly #tables: Tables;
  readonly #index: ClaimIndex;
  readonly #woke: (queue: string) => void;

  constructor(world: World, now: number, woke: (queue: string) => void) {
    this.now = now;
    this.keepKeysForMs = world.keepKeysForMs;
    this.#world = world;
    this.#tables = world.tables;
    this.#index = world.index;
    this.#woke = woke;
  }

  randomId(): string {
    return this.#world.options.randomId();
  }

  row(id: number): Row | undefined {
    return this.#tables.rows.get(id);
  }

  payload(id: number): string {
    const payload = this.#tables.payloads.get(id);
    if (payload === undefined) throw new Error(`job ${id} has no payload`);
    return payload;
  }

  insert(row: Row, payload: string): void {
    this.#tables.payloads.set(row.job.id, payload);
    const { requestId } = row.job.submission;
    if (requestId !== null) this.#tables.requests.set(requestId, row.job.id);
    this.#set(undefined, row);
  }

  write(before: Row, after: Row): void {
    this.#set(before, after);
  }

  #set(before: Row | undefined, after: Row): void {
    this.#tables.rows.set(after.job.id, after);
    this.#index.moved(before, after);
    this.#woke(after.job.submission.queue);
  }

  takeId(): number {
    const id = this.#tables.counters.nextId;
    if (id >= limits.idMax) throw new NumbersExhaustedError('ids');
    this.#tables.counters = { ...this.#tables.counters, nextId: id + 1 };
    return id;
  }

  peekToken(): number {
    return this.#tables.counters.nextToken;
  }

  takeToken(): number {
    const token = this.peekToken();
    if (token >= limits.tokenMax) throw new NumbersExhaustedError('tokens');
    this.#tables.counters = { ...this.#tables.counters, nextToken: token + 1 };
    return token;
  }

  key(key: string): KeyRow | undefined {
    return this.#tables.keys.get(key);
  }

  setKey(row: KeyRow): void {
    this.#tables.keys.set(row.key, row);
  }

  requestedJob(requestId: string): number | undefined {
    return this.#tables.requests.get(requestId);
  }

  effect(place: EffectPlace): EffectRow | undefined {
    return this.#tables.effects.get(effectRowKey(place));
  }

  setEffect(row: EffectRow): void {
    this.#tables.effects.set(effectRowKey(row), row);
  }

  deleteEffect(place: EffectPlace): void {
    this.#tables.effects.delete(effectRowKey(place));
  }

  testimony(id: number): readonly Testimony[] {
    return this.#tables.testimony.get(id) ?? [];
  }

  addTestimony(testimony: Testimony): void {
    this.#tables.testimony.set(testimony.id, [...this.testimony(testimony.id), testimony]);
  }

  queue(queue: string): QueueRow | undefined {
    return this.#tables.queues.get(queue);
  }

  setQueue(row: QueueRow): void {
    this.#tables.queues.set(row.queue, row);
    this.#woke(row.queue);
  }

  definitions(kind: string, revision: number): readonly DefinitionRecord[] {
    return [...this.#tables.definitions.values()].filter(
      (one) => one.kind === kind && one.revision === revision,
    );
  }

  addDefinition(definition: DefinitionRecord): void {
    this.#tables.definitions.set(JSON.stringify(definition), definition);
  }

  seeWorker(worker: string, known: readonly { readonly kind: string; readonly revision: number }[]): void {
    const definitions = known.map(({ kind, revision }) => ({ kind, revision }));
    this.#tables.workers.set(worker, { worker, seenAt: this.now, definitions });
  }

  keepWorkerAlive(worker: string): void {
    const row = this.#tables.workers.get(worker);
    if (row !== undefined) this.#tables.workers.set(worker, { ...row, seenAt: this.now });
  }

  addAct(
    act: Act['act'],
    by: { readonly actor: string; readonly reason: string | null },
    detail: string,
  ): void {
    const { actor, reason } = by;
    this.#tables.acts.set(this.#tables.acts.size, { act, tick: this.now, actor, reason, detail });
  }

  seal(movedTo: string): void {
    this.#tables.sealedTo = movedTo;
  }

  isHead(job: Job): boolean {
    return this.#index.isHead(job);
  }

  picker(request: Pick<ClaimRequest, 'definitions' | 'queues'>): Picker {
    const own = new Map(request.definitions.map((definition) => [definition.kind, definition.revision]));
    const paused = (queue: string): boolean => (this.queue(queue)?.paused ?? null) !== null;
    const permitted = (route: Route): boolean =>
      (own.get(route.kind) ?? 0) >= route.revision &&
      (request.queues?.includes(route.queue) ?? true) &&
      (route.internal || !paused(route.queue));
    return { next: (token) => this.#index.pick(this.now, token, permitted) };
  }

  heldBy(requestId: string): readonly Row[] {
    return this.#index.heldBy(requestId).flatMap((id) => this.row(id) ?? []);
  }

  nextOverdue(): Row | null {
    return this.#index.nextOverdue(this.now);
  }

  unresolved(queue: string): number {
    return this.#index.unresolved(queue);
  }
}
