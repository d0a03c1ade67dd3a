/** The SQLite store: one file, durable at every answer, shared fairly by the processes of one machine. */
import { randomInt } from 'node:crypto';
import { canonicalJson, type DefinitionStanding, limits } from '../../core/index.ts';
import { enqueue, withheld } from '../engine/admission.ts';
import * as custody from '../engine/custody.ts';
import { detach } from '../engine/detach.ts';
import type { Engine } from '../engine/engine.ts';
import * as operate from '../engine/operate.ts';
import * as acts from '../engine/store-acts.ts';
import { admitHolder, refusalOf, run } from '../engine/transact.ts';
import { tellAll } from '../engine/wake.ts';
import { InvalidInputError, SnapshotRefusedError, StoreClosedError, StoreSealedError } from '../errors.ts';
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
import { checkSnapshot } from '../snapshot-check.ts';
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
import { Commits } from './commits.ts';
import { betterSqliteDriver, type SqlConnection, type SqlDriver } from './driver.ts';
import { IN_MEMORY, openReading, openWriting } from './file.ts';
import { restore, snapshot } from './moving.ts';
import { type ReadCounter, Reads } from './reads.ts';
import { prune } from './retention.ts';
import { Columns } from './rows.ts';
import type { SqliteSession } from './session.ts';

/** How a SQLite store is opened; it reads time only through `clock`. */
export interface SqliteStoreOptions {
  /** Milliseconds, whole. */
  readonly clock: () => number;
  /** `simulated` snapshots do not restore into real stores. */
  readonly clockName: 'unix' | 'simulated';
  /** A random id of 1 to 64 bytes, never the same twice. */
  readonly randomId: () => string;
  /** How long idempotency keys are kept after their job ended, default 30 days; taken when the file is made. */
  readonly keepKeysForMs?: number;
  /** Open also on a file system where locks are known not to hold. Default false. */
  readonly allowUnsafeFileSystem?: boolean;
  /** Another driver of the same structure, default better-sqlite3. */
  readonly driver?: SqlDriver;
  /** Told what an operator should know and nothing fails for. */
  readonly warn?: (message: string) => void;
}

/** How often the file is looked at for commits of other processes while somebody listens. */
const FOREIGN_POLL_MS = 20;

export class SqliteStore implements Store {
  readonly capabilities: Capabilities;
  readonly #options: SqliteStoreOptions;
  readonly #commits: Commits;
  readonly #reads: Reads;
  readonly #wakes: Set<{ readonly wake: Wake }>;
  #poll: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(
    options: SqliteStoreOptions,
    commits: Commits,
    reads: Reads,
    wakes: Set<{ readonly wake: Wake }>,
  ) {
    this.#options = options;
    this.#commits = commits;
    this.#reads = reads;
    this.#wakes = wakes;
    this.capabilities = { durable: true, shared: true, clock: options.clockName };
  }

  async enqueue(
    requests: Parameters<Store['enqueue']>[0],
    options: { readonly atomic?: boolean } = {},
  ): Promise<readonly EnqueueVerdict[]> {
    const asked = readRequests(requests);
    const atomic = readFlag(readOptions(options, 'options', ['atomic']).atomic ?? false, 'atomic');
    return this.#submit((engine) => enqueue(engine, asked, atomic)).catch(withheld);
  }

  async claim(request: ClaimRequest): Promise<readonly Delivery[]> {
    const read = readClaim(request);
    if (!this.#look((now) => this.#isWorthAsking(read, now))) return [];
    return this.#submit((engine) => custody.claim(engine, read));
  }

  /** Work, an answer that was given before, or a worker whose sign of life is due: anything else needs no lock. */
  #isWorthAsking(request: ClaimRequest, now: number): boolean {
    const { worker, requestId, definitions } = request;
    return (
      this.#reads.hasWork(request, now) ||
      this.#reads.isClaimed(requestId) ||
      !this.#reads.isSeen(worker, definitions, now)
    );
  }

  async begin(holders: readonly Holder[]): Promise<readonly Verdict[]> {
    const read = custody.readHolders(holders);
    return this.#submit((engine) => custody.begin(engine, read));
  }

  async extend(
    extensions: readonly (Holder & { readonly extendMs: number })[],
  ): Promise<readonly ExtendVerdict[]> {
    const read = custody.readExtensions(extensions);
    return this.#submit((engine) => custody.extend(engine, read));
  }

  async settle(settlements: readonly Settlement[], claim: ClaimRequest | null = null): Promise<Settled> {
    custody.checkSettlements(settlements);
    const wish = claim === null ? null : readClaim(claim);
    return this.#submit((engine) => ({
      settled: custody.settle(engine, settlements),
      claimed: wish === null ? [] : custody.claim(engine, wish),
    }));
  }

  async transact<Value>(holder: Holder, apply: (tx: StoreTransaction) => Value): Promise<Transacted<Value>> {
    const read = readHolder(holder, 'holder');
    readFunction(apply, 'apply');
    const admitted = await this.#submit((engine) => admitHolder(engine, read));
    if (!admitted.ok) return admitted;
    try {
      return await this.#commits.submit((engine, connection) => {
        const application = new Application(connection);
        const value = run(engine, read, () => application.state, apply);
        application.store();
        return { ok: true, value, job: detach(engine.rowOf(read.id).job) } as const;
      }, true);
    } catch (error) {
      const refused = refusalOf(error);
      const after = await this.#submit((engine) => admitHolder(engine, read));
      return after.ok ? { ok: false, refused, job: (await this.get(read.id))?.job ?? null } : after;
    }
  }

  async lapse(limit: number): Promise<{ readonly ids: readonly number[]; readonly more: boolean }> {
    const bound = readWhole(limit, 'limit', 1, limits.lapsePageMax);
    if (!this.#look((now) => this.#reads.isOverdue(now))) return { ids: [], more: false };
    return this.#submit((engine) => {
      const ids = engine.lapseOverdue(bound);
      return { ids, more: engine.session.nextOverdue() !== null };
    });
  }

  async cancel(request: OperatorRequest): Promise<Verdict> {
    return this.#submit((engine) => operate.cancel(engine, request));
  }

  async reconcile(request: ReconcileRequest): Promise<ReconcileVerdict> {
    return this.#submit((engine) => operate.reconcile(engine, request));
  }

  async promote(request: OperatorRequest): Promise<Verdict> {
    return this.#submit((engine) => operate.promote(engine, request));
  }

  async redrive(request: RedriveRequest): Promise<RedriveVerdict> {
    return this.#submit((engine) => operate.redrive(engine, request));
  }

  async dismiss(request: OperatorRequest): Promise<Verdict> {
    return this.#submit((engine) => operate.dismiss(engine, request));
  }

  async pause(queue: string, by: By): Promise<void> {
    return this.#submit((engine) => acts.pause(engine, queue, by));
  }

  async resume(queue: string, by: By): Promise<void> {
    return this.#submit((engine) => acts.resume(engine, queue, by));
  }

  async configure(queue: string, settings: { readonly maxUnresolved: number | null }, by: By): Promise<void> {
    return this.#submit((engine) => acts.configure(engine, queue, settings, by));
  }

  async register(registration: Registration): Promise<readonly DefinitionStanding[]> {
    return this.#submit((engine) => acts.register(engine, registration));
  }

  async get(id: number): Promise<JobView | null> {
    return this.#read(() => this.#reads.get(id));
  }

  async getByKey(key: string): Promise<{ readonly id: number; readonly view: JobView | null } | null> {
    return this.#read((now) => this.#reads.getByKey(key, now));
  }

  async find(query: FindQuery): Promise<Found> {
    return this.#read(() => this.#reads.find(query));
  }

  async counts(): Promise<Counts> {
    return this.#read((now) => this.#reads.counts(now));
  }

  async queues(): Promise<readonly QueueView[]> {
    return this.#read(() => this.#reads.queues());
  }

  async lanes(limit: number): Promise<readonly LaneView[]> {
    return this.#read(() => this.#reads.lanes(limit));
  }

  async workers(): Promise<readonly WorkerView[]> {
    return this.#read((now) => this.#reads.workers(now));
  }

  async evidence(id: number): Promise<JobEvidence | null> {
    return this.#read(() => this.#reads.evidence(id));
  }

  async explain(id: number, definitions: ClaimRequest['definitions']): Promise<Explanation | null> {
    return this.#read((now) => this.#reads.explain(id, definitions, now));
  }

  async acts(): Promise<readonly Act[]> {
    return this.#read(() => this.#reads.acts());
  }

  subscribe(wake: Wake): () => void {
    const subscription = { wake: readFunction(wake, 'wake') };
    this.#wakes.add(subscription);
    this.#poll ??= this.#pollForeignCommits();
    return () => {
      this.#wakes.delete(subscription);
      if (this.#wakes.size > 0 || this.#poll === null) return;
      clearInterval(this.#poll);
      this.#poll = null;
    };
  }

  /** Another process's commit shows as a number that changed: a look costs microseconds and no lock. */
  #pollForeignCommits(): NodeJS.Timeout {
    const timer = setInterval(() => {
      if (this.#commits.foreignCommit()) tellAll([...this.#wakes], []);
    }, FOREIGN_POLL_MS);
    timer.unref();
    return timer;
  }

  async prune(request: PruneRequest): Promise<Pruned> {
    return this.#submit((engine, connection, session) => {
      session.flush();
      return prune(engine, connection, session, request);
    });
  }

  async snapshot(): Promise<Snapshot> {
    return this.#read((now) => snapshot(this.#reads, this.#options.clockName, now));
  }

  async restore(
    value: unknown,
    options: { readonly as: 'restart' | 'copy'; readonly by: By },
  ): Promise<void> {
    const { as, by } = readOptions(options, 'options', ['as', 'by']);
    if (as !== 'restart' && as !== 'copy') throw new InvalidInputError('as', 'must be restart or copy');
    const proven = checkSnapshot(value);
    if (proven.snapshot.clock === 'simulated' && this.#options.clockName === 'unix') {
      throw new SnapshotRefusedError(
        'snapshot.clock',
        'must be unix: simulated ticks mean nothing to a real clock',
      );
    }
    return this.#submit((_engine, connection, session) => restore(session, connection, proven, as, by));
  }

  async seal(movedTo: string, by: By): Promise<void> {
    return this.#submit((engine) => acts.seal(engine, movedTo, by));
  }

  /** The file was brought to the current schema when it was opened. */
  async migrate(): Promise<void> {
    if (this.#closed) throw new StoreClosedError();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#poll !== null) clearInterval(this.#poll);
    this.#wakes.clear();
    // The writing connection goes last: only the last one to close moves the log into the file.
    this.#commits.refuse();
    await this.#commits.drained();
    this.#reads.close();
    this.#commits.close();
  }

  async #submit<Value>(
    work: (engine: Engine, connection: SqlConnection, session: SqliteSession) => Value,
  ): Promise<Value> {
    return detach(await this.#commits.submit(work));
  }

  #read<Value>(work: (now: number, counter: ReadCounter) => Value): Value {
    if (this.#closed) throw new StoreClosedError();
    return detach(this.#reads.reading((counter) => work(this.#now(counter), counter)));
  }

  /** Looks whether a change is worth the write lock; a sealed store refuses it either way. */
  #look(work: (now: number) => boolean): boolean {
    return this.#read((now, { sealedTo, lastTick }) => {
      if (sealedTo !== null) throw new StoreSealedError(sealedTo);
      // A clock that has to be followed back is work of its own: leases and starts reckoned from it are wrong.
      return now < lastTick || work(now);
    });
  }

  /** The clock as reads see it; a read commits nothing, so it follows no clock back. */
  #now({ lastTick }: ReadCounter): number {
    const read = readClock(this.#options.clock);
    return read < lastTick && lastTick - read <= limits.clockToleranceMs ? lastTick : read;
  }
}

/** The JSON the program keeps in the file, read when it is first asked for and written only if it was. */
class Application {
  readonly #connection: SqlConnection;
  #state: ApplicationState | null = null;

  constructor(connection: SqlConnection) {
    this.#connection = connection;
  }

  get state(): ApplicationState {
    const row = this.#connection.prepare('select state from application where one = 1').get();
    this.#state ??= JSON.parse(row === undefined ? '{}' : new Columns(row).text('state')) as ApplicationState;
    return this.#state;
  }

  store(): void {
    if (this.#state === null) return;
    const bounds = { maxDepth: limits.payloadDepthMax, maxBytes: Number.MAX_SAFE_INTEGER };
    const canonical = canonicalJson(this.#state, bounds);
    if (!canonical.ok)
      throw new InvalidInputError('application', `${canonical.problem} at ${canonical.path}`);
    this.#connection.prepare('update application set state = ? where one = 1').run(canonical.text);
  }
}

/**
 * Opens a SQLite store, making the file and its schema when they are missing. Rejects with a typed error for a file that
 * cannot keep what is promised; then it was not changed.
 *
 * @example
 * ```ts
 * const store = await openSqliteStore('jobs.db', {
 *   clock: () => Date.now(),
 *   clockName: 'unix',
 *   randomId: () => crypto.randomUUID(),
 * });
 * ```
 */
export async function openSqliteStore(path: string, options: SqliteStoreOptions): Promise<SqliteStore> {
  if (options.keepKeysForMs !== undefined)
    readWhole(options.keepKeysForMs, 'keepKeysForMs', 0, limits.keepKeysForMsMax);
  checkClockName(options.clockName);
  readClock(options.clock);
  const randomId = checkedIds(options.randomId);
  const driver = options.driver ?? betterSqliteDriver();
  const random = (): number => randomInt(2 ** 32) / 2 ** 32;
  const file = {
    driver,
    clockName: options.clockName,
    keepKeysForMs: options.keepKeysForMs ?? limits.keepKeysForMsDefault,
    allowUnsafeFileSystem: options.allowUnsafeFileSystem === true,
    warn: options.warn ?? (() => undefined),
    wait: () =>
      new Promise<void>((resolve) => {
        setTimeout(resolve, 0.2 + 3.8 * random());
      }),
  };
  const reopen = (): Promise<SqlConnection> => openWriting(path, file);
  const connection = await reopen();
  const wakes = new Set<{ readonly wake: Wake }>();
  const commits = new Commits(connection, {
    clock: options.clock,
    randomId,
    random,
    path,
    writer: randomId(),
    reopen,
    committed: (queues) => tellAll([...wakes], queues),
  });
  const reads = new Reads(path === IN_MEMORY ? connection : openReading(path, driver));
  return new SqliteStore(options, commits, reads, wakes);
}
