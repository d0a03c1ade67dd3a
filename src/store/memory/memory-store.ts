/** The memory store: the reference model of every verb, all in one process, gone with it unless a snapshot was taken. */
import { canonicalJson, type DefinitionStanding, deepCopyJson, limits } from '../../core/index.ts';
import { enqueue, withheld } from '../engine/admission.ts';
import * as custody from '../engine/custody.ts';
import { detach } from '../engine/detach.ts';
import type { Engine } from '../engine/engine.ts';
import * as operate from '../engine/operate.ts';
import * as acts from '../engine/store-acts.ts';
import { admitHolder, refusalOf, run } from '../engine/transact.ts';
import { InvalidInputError } from '../errors.ts';
import {
  checkClockName,
  checkedIds,
  readClaim,
  readClock,
  readFlag,
  readFunction,
  readHolder,
  readOptions,
  readRequests,
  readWhole,
} from '../input.ts';
import type { Snapshot } from '../snapshot.ts';
import type {
  Act,
  ApplicationState,
  By,
  Capabilities,
  ClaimRequest,
  Counts,
  Delivery,
  EnqueueVerdict,
  Explanation,
  ExtendVerdict,
  FindQuery,
  Found,
  Holder,
  JobEvidence,
  JobView,
  LaneView,
  OperatorRequest,
  Pruned,
  PruneRequest,
  QueueView,
  ReconcileRequest,
  ReconcileVerdict,
  RedriveRequest,
  RedriveVerdict,
  Registration,
  Settled,
  Settlement,
  Store,
  StoreTransaction,
  Transacted,
  Verdict,
  Wake,
  WorkerView,
} from '../store.ts';
import { restore, snapshot } from './moving.ts';
import * as reads from './reads.ts';
import { prune } from './retention.ts';
import { type MemoryStoreOptions, World } from './world.ts';

/** A store in memory, with the program's JSON state beside its jobs. */
export class MemoryStore implements Store {
  readonly capabilities: Capabilities;
  readonly #world: World;

  constructor(options: MemoryStoreOptions) {
    if (options.keepKeysForMs !== undefined) {
      readWhole(options.keepKeysForMs, 'keepKeysForMs', 0, limits.keepKeysForMsMax);
    }
    checkClockName(options.clockName);
    const application = checkedApplication(options.application ?? {});
    this.#world = new World({ ...options, randomId: checkedIds(options.randomId) }, application);
    this.capabilities = { durable: false, shared: false, clock: options.clockName };
  }

  /** A copy of the program's own state, which `transact` edits. */
  application(): ApplicationState {
    return deepCopyJson(this.#world.application) as ApplicationState;
  }

  async enqueue(
    requests: Parameters<Store['enqueue']>[0],
    options: { readonly atomic?: boolean } = {},
  ): Promise<readonly EnqueueVerdict[]> {
    const asked = readRequests(requests);
    const atomic = readFlag(readOptions(options, 'options', ['atomic']).atomic ?? false, 'atomic');
    try {
      return this.#change((engine) => enqueue(engine, asked, atomic));
    } catch (error) {
      return withheld(error);
    }
  }

  async claim(request: ClaimRequest): Promise<readonly Delivery[]> {
    const read = readClaim(request);
    return this.#change((engine) => custody.claim(engine, read));
  }

  async begin(holders: readonly Holder[]): Promise<readonly Verdict[]> {
    const read = custody.readHolders(holders);
    return this.#change((engine) => custody.begin(engine, read));
  }

  async extend(
    extensions: readonly (Holder & { readonly extendMs: number })[],
  ): Promise<readonly ExtendVerdict[]> {
    const read = custody.readExtensions(extensions);
    return this.#change((engine) => custody.extend(engine, read));
  }

  async settle(settlements: readonly Settlement[], claim: ClaimRequest | null = null): Promise<Settled> {
    custody.checkSettlements(settlements);
    const wish = claim === null ? null : readClaim(claim);
    return this.#change((engine) => ({
      settled: custody.settle(engine, settlements),
      claimed: wish === null ? [] : custody.claim(engine, wish),
    }));
  }

  async transact<Value>(holder: Holder, apply: (tx: StoreTransaction) => Value): Promise<Transacted<Value>> {
    const read = readHolder(holder, 'holder');
    readFunction(apply, 'apply');
    const admitted = this.#change((engine) => admitHolder(engine, read));
    if (!admitted.ok) return admitted;
    // Edited apart and installed with the commit: who keeps the object, or fails, has touched nothing of the store.
    const working = this.application();
    const { id } = read;
    try {
      const answer = this.#world.atomically((engine) => {
        const value = run(engine, read, () => working, apply);
        this.#world.application = checkedApplication(working);
        return { ok: true, value, job: detach(engine.rowOf(id).job) } as const;
      });
      this.#world.wake();
      return answer;
    } catch (error) {
      const refused = refusalOf(error);
      const after = this.#change((engine) => admitHolder(engine, read));
      return after.ok ? { ok: false, refused, job: (await this.get(id))?.job ?? null } : after;
    }
  }

  async lapse(limit: number): Promise<{ readonly ids: readonly number[]; readonly more: boolean }> {
    const bound = readWhole(limit, 'limit', 1, limits.lapsePageMax);
    return this.#change((engine) => {
      const ids = engine.lapseOverdue(bound);
      return { ids, more: engine.session.nextOverdue() !== null };
    });
  }

  async cancel(request: OperatorRequest): Promise<Verdict> {
    return this.#change((engine) => operate.cancel(engine, request));
  }

  async reconcile(request: ReconcileRequest): Promise<ReconcileVerdict> {
    return this.#change((engine) => operate.reconcile(engine, request));
  }

  async promote(request: OperatorRequest): Promise<Verdict> {
    return this.#change((engine) => operate.promote(engine, request));
  }

  async redrive(request: RedriveRequest): Promise<RedriveVerdict> {
    return this.#change((engine) => operate.redrive(engine, request));
  }

  async dismiss(request: OperatorRequest): Promise<Verdict> {
    return this.#change((engine) => operate.dismiss(engine, request));
  }

  async pause(queue: string, by: By): Promise<void> {
    this.#change((engine) => acts.pause(engine, queue, by));
  }

  async resume(queue: string, by: By): Promise<void> {
    this.#change((engine) => acts.resume(engine, queue, by));
  }

  async configure(queue: string, settings: { readonly maxUnresolved: number | null }, by: By): Promise<void> {
    this.#change((engine) => acts.configure(engine, queue, settings, by));
  }

  async register(registration: Registration): Promise<readonly DefinitionStanding[]> {
    return this.#change((engine) => acts.register(engine, registration));
  }

  async get(id: number): Promise<JobView | null> {
    return this.#read(() => reads.get(this.#world, id));
  }

  async getByKey(key: string): Promise<{ readonly id: number; readonly view: JobView | null } | null> {
    return this.#read((now) => reads.getByKey(this.#world, key, now));
  }

  async find(query: FindQuery): Promise<Found> {
    return this.#read(() => reads.find(this.#world, query));
  }

  async counts(): Promise<Counts> {
    return this.#read((now) => reads.counts(this.#world, now));
  }

  async queues(): Promise<readonly QueueView[]> {
    return this.#read(() => reads.queues(this.#world));
  }

  async lanes(limit: number): Promise<readonly LaneView[]> {
    return this.#read(() => reads.lanes(this.#world, limit));
  }

  async workers(): Promise<readonly WorkerView[]> {
    return this.#read((now) => reads.workers(this.#world, now));
  }

  async evidence(id: number): Promise<JobEvidence | null> {
    return this.#read(() => reads.evidence(this.#world, id));
  }

  async explain(id: number, definitions: ClaimRequest['definitions']): Promise<Explanation | null> {
    return this.#read((now) => reads.explain(this.#world, id, definitions, now));
  }

  async acts(): Promise<readonly Act[]> {
    return this.#read(() => detach([...this.#world.tables.acts.values()]));
  }

  subscribe(wake: Wake): () => void {
    const subscription = { wake: readFunction(wake, 'wake') };
    this.#world.wakes.add(subscription);
    return () => {
      this.#world.wakes.delete(subscription);
    };
  }

  async prune(request: PruneRequest): Promise<Pruned> {
    return this.#change((engine) => prune(this.#world, engine, request));
  }

  async snapshot(): Promise<Snapshot> {
    return this.#read(() => snapshot(this.#world));
  }

  async restore(
    value: unknown,
    options: { readonly as: 'restart' | 'copy'; readonly by: By },
  ): Promise<void> {
    const { as, by } = readOptions(options, 'options', ['as', 'by']);
    if (as !== 'restart' && as !== 'copy') throw new InvalidInputError('as', 'must be restart or copy');
    this.#answer(() => restore(this.#world, value, as, by));
  }

  async seal(movedTo: string, by: By): Promise<void> {
    this.#change((engine) => acts.seal(engine, movedTo, by));
  }

  /** There is no schema to bring up to date. */
  async migrate(): Promise<void> {
    this.#world.assertOpen();
  }

  async close(): Promise<void> {
    if (!this.#world.closed) this.#world.assertOpen();
    this.#world.closed = true;
    this.#world.wakes.clear();
  }

  #change<Value>(work: (engine: Engine) => Value): Value {
    return this.#answer(() => this.#world.atomically(work));
  }

  /** What leaves the store shares nothing with it; listeners hear of a commit after it. */
  #answer<Value>(work: () => Value): Value {
    const value = work();
    this.#world.wake();
    return detach(value);
  }

  /** The clock as reads see it; a read commits nothing, so it follows no clock back. */
  #read<Value>(work: (now: number) => Value): Value {
    this.#world.assertOpen();
    const read = readClock(this.#world.options.clock);
    const { lastTick } = this.#world.tables.counters;
    const held = read < lastTick && lastTick - read <= limits.clockToleranceMs;
    return work(held ? lastTick : read);
  }
}

/** The program's state as it may be kept: JSON, and sharing nothing with what was put in. */
function checkedApplication(application: ApplicationState): ApplicationState {
  const bounds = { maxDepth: limits.payloadDepthMax, maxBytes: Number.MAX_SAFE_INTEGER };
  const canonical = canonicalJson(application, bounds);
  if (canonical.ok && canonical.text.startsWith('{')) return deepCopyJson(application) as ApplicationState;
  if (canonical.ok) throw new InvalidInputError('application', 'must be a plain object');
  throw new InvalidInputError('application', `${canonical.problem} at ${canonical.path}`);
}

/**
 * Opens an empty memory store. It reads time and chance only through its options, so that a run can be repeated.
 *
 * @example
 * ```ts
 * let tick = 0;
 * let ids = 0;
 * const store = openMemoryStore({ clock: () => tick, clockName: 'simulated', randomId: () => `id-${++ids}` });
 * ```
 */
export function openMemoryStore(options: MemoryStoreOptions): MemoryStore {
  return new MemoryStore(options);
}
