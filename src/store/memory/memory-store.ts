/** The memory store: the reference model of every verb, all in one process, gone with it unless a snapshot was taken. */
import { compareDefinition, type DefinitionStanding, deepCopyJson, limits } from '../../core/index.ts';
import { InvalidInputError } from '../errors.ts';
import {
  byRow,
  readClaim,
  readFields,
  readHolder,
  readKind,
  readList,
  readName,
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
import { enqueue } from './admission.ts';
import * as custody from './custody.ts';
import { restore, snapshot } from './moving.ts';
import * as operate from './operate.ts';
import * as reads from './reads.ts';
import { prune } from './retention.ts';
import { transact } from './transact.ts';
import { type MemoryStoreOptions, World } from './world.ts';

/** A store in memory, with the program's JSON state beside its jobs. */
export class MemoryStore implements Store {
  readonly capabilities: Capabilities;
  readonly #world: World;

  constructor(options: MemoryStoreOptions) {
    if (options.keepKeysForMs !== undefined) {
      readWhole(options.keepKeysForMs, 'keepKeysForMs', 0, limits.tickMax);
    }
    const application = deepCopyJson(options.application ?? {}) as ApplicationState;
    this.#world = new World(options, application);
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
    return this.#answer(() => enqueue(this.#world, asked, options.atomic === true));
  }

  async claim(request: ClaimRequest): Promise<readonly Delivery[]> {
    const read = readClaim(request);
    return this.#change((now) => custody.claim(this.#world, read, now));
  }

  async begin(holders: readonly Holder[]): Promise<readonly Verdict[]> {
    const read = custody.readHolders(holders);
    return this.#change((now) => custody.begin(this.#world, read, now));
  }

  async extend(
    extensions: readonly (Holder & { readonly extendMs: number })[],
  ): Promise<readonly ExtendVerdict[]> {
    const read = custody.readExtensions(extensions);
    return this.#change((now) => custody.extend(this.#world, read, now));
  }

  async settle(settlements: readonly Settlement[], claim: ClaimRequest | null = null): Promise<Settled> {
    custody.checkSettlements(settlements);
    const wish = claim === null ? null : readClaim(claim);
    return this.#change((now) => ({
      settled: custody.settle(this.#world, settlements, now),
      claimed: wish === null ? [] : custody.claim(this.#world, wish, now),
    }));
  }

  async transact<Value>(holder: Holder, apply: (tx: StoreTransaction) => Value): Promise<Transacted<Value>> {
    const read = readHolder(holder, 'holder');
    const { job, ...answer } = transact(this.#world, read, apply);
    this.#world.wake();
    return { ...answer, job: structuredClone(job) } as Transacted<Value>;
  }

  async lapse(limit: number): Promise<{ readonly ids: readonly number[]; readonly more: boolean }> {
    const bound = readWhole(limit, 'limit', 1, limits.lapsePageMax);
    return this.#change((now) => {
      const ids = this.#world.lapseOverdue(now, bound);
      return { ids, more: this.#world.index.nextOverdue(now) !== null };
    });
  }

  async cancel(request: OperatorRequest): Promise<Verdict> {
    return this.#change(() => operate.cancel(this.#world, request));
  }

  async reconcile(request: ReconcileRequest): Promise<ReconcileVerdict> {
    return this.#change(() => operate.reconcile(this.#world, request));
  }

  async promote(request: OperatorRequest): Promise<Verdict> {
    return this.#change(() => operate.promote(this.#world, request));
  }

  async redrive(request: RedriveRequest): Promise<RedriveVerdict> {
    return this.#change(() => operate.redrive(this.#world, request));
  }

  async dismiss(request: OperatorRequest): Promise<Verdict> {
    return this.#change(() => operate.dismiss(this.#world, request));
  }

  async pause(queue: string, by: By): Promise<void> {
    this.#setQueue('pause', queue, by, (now, noted) => ({ paused: { ...noted, tick: now } }));
  }

  async resume(queue: string, by: By): Promise<void> {
    this.#setQueue('resume', queue, by, () => ({ paused: null }));
  }

  async configure(queue: string, settings: { readonly maxUnresolved: number | null }, by: By): Promise<void> {
    const { maxUnresolved } = readFields(settings, 'settings');
    if (maxUnresolved !== null) readWhole(maxUnresolved, 'maxUnresolved', 0, limits.maxUnresolvedMax);
    this.#setQueue('configure', queue, by, () => ({ maxUnresolved }));
  }

  async register(registration: Registration): Promise<readonly DefinitionStanding[]> {
    const worker = readName(registration.worker, 'worker', limits.workerBytesMax);
    const definitions = readList(
      readFields(registration, 'registration').definitions,
      'definitions',
      limits.definitionsMax,
    ).map((definition, index) => {
      const field = `definitions[${index}]`;
      const { schemaDigest } = definition;
      if (schemaDigest !== null && !/^[0-9a-f]{64}$/.test(schemaDigest)) {
        throw new InvalidInputError(
          `${field}.schemaDigest`,
          'must be 64 lower-case hexadecimal digits or null',
        );
      }
      const normalisation = readName(definition.normalisation, `${field}.normalisation`, limits.kindBytesMax);
      return { ...readKind(definition, field), schemaDigest, normalisation };
    });
    return this.#change((now) => {
      const { tables } = this.#world;
      const recorded = [...tables.definitions.values()];
      const standings = definitions.map((definition) => compareDefinition(recorded, definition));
      if (standings.includes('changed')) return standings;
      for (const [index, definition] of definitions.entries()) {
        if (standings[index] !== 'same') tables.definitions.set(JSON.stringify(definition), definition);
      }
      const known = definitions.map(({ kind, revision }) => ({ kind, revision }));
      tables.workers.set(worker, { worker, seenAt: now, definitions: known });
      return standings;
    });
  }

  async get(id: number): Promise<JobView | null> {
    return this.#read(() => reads.get(this.#world, id));
  }

  async getByKey(key: string): Promise<{ readonly id: number; readonly view: JobView | null } | null> {
    return this.#read(() => reads.getByKey(this.#world, key));
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
    return this.#read(() => structuredClone([...this.#world.tables.acts.values()]));
  }

  subscribe(wake: Wake): () => void {
    this.#world.wakes.add(wake);
    return () => {
      this.#world.wakes.delete(wake);
    };
  }

  async prune(request: PruneRequest): Promise<Pruned> {
    return this.#change(() => prune(this.#world, request));
  }

  async snapshot(): Promise<Snapshot> {
    return this.#read(() => snapshot(this.#world));
  }

  async restore(
    value: unknown,
    options: { readonly as: 'restart' | 'copy'; readonly by: By },
  ): Promise<void> {
    if (options.as !== 'restart' && options.as !== 'copy') {
      throw new InvalidInputError('as', 'must be restart or copy');
    }
    this.#answer(() => restore(this.#world, value, options.as, options.by));
  }

  async seal(movedTo: string, by: By): Promise<void> {
    const noted = byRow(by);
    readName(movedTo, 'movedTo', limits.reasonBytesMax);
    this.#change((now) => {
      this.#world.act('seal', now, noted, JSON.stringify({ movedTo }));
      this.#world.tables.sealedTo = movedTo;
    });
  }

  /** There is no schema to bring up to date. */
  async migrate(): Promise<void> {
    this.#world.assertOpen();
  }

  async close(): Promise<void> {
    this.#world.closed = true;
    this.#world.wakes.clear();
  }

  #setQueue(
    act: 'pause' | 'resume' | 'configure',
    name: string,
    by: By,
    change: (now: number, noted: ReturnType<typeof byRow>) => object,
  ): void {
    const queue = readName(name, 'queue', limits.queueBytesMax);
    const noted = byRow(by);
    this.#change((now) => {
      const { queues } = this.#world.tables;
      const row = queues.get(queue) ?? { queue, maxUnresolved: null, paused: null };
      const columns = change(now, noted);
      queues.set(queue, { ...row, ...columns });
      this.#world.act(act, now, noted, JSON.stringify({ queue, ...columns }));
    });
  }

  #change<Value>(work: (now: number) => Value): Value {
    return this.#answer(() => this.#world.atomically(() => work(this.#world.now())));
  }

  /** What leaves the store shares nothing with it; listeners hear of a commit after it. */
  #answer<Value>(work: () => Value): Value {
    const value = work();
    this.#world.wake();
    return structuredClone(value);
  }

  /** The clock as reads see it; a read commits nothing, so it follows no clock back. */
  #read<Value>(work: (now: number) => Value): Value {
    this.#world.assertOpen();
    const read = this.#world.options.clock();
    const { lastTick } = this.#world.tables.counters;
    const held = read < lastTick && lastTick - read <= limits.clockToleranceMs;
    return work(held ? lastTick : read);
  }
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
