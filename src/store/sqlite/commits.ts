/**
 * Group commit: calls that arrive while a commit is in flight join the next, and each is answered only after the commit
 * that holds it is durable. The event loop never sleeps for another process's lock.
 */
import { cutLease, limits } from '../../core/index.ts';
import { Engine } from '../engine/engine.ts';
import { StoreClosedError, StoreSealedError } from '../errors.ts';
import { readClock } from '../input.ts';
import { Catalogue } from './catalogue.ts';
import type { SqlConnection } from './driver.ts';
import { isBusy, OutcomeUnknownError, StorageBusyError, StorageFailedError, storageError } from './errors.ts';
import { BUSY_ATTEMPTS_MAX } from './file.ts';
import { Columns } from './rows.ts';
import { SqliteSession } from './session.ts';
import { prepareStatements, type Statements } from './statements.ts';

/** What a store is given; it reads no clock and draws no chance of its own. */
export interface CommitOptions {
  readonly clock: () => number;
  readonly randomId: () => string;
  /** From 0 to 1: spreads the waits for another process's lock. */
  readonly random: () => number;
  readonly path: string;
  /** Names this open store among those that share the file. */
  readonly writer: string;
  readonly reopen: () => Promise<SqlConnection>;
  /** Called after each commit with the queues it may have made work in; empty for a commit of another process. */
  readonly committed: (queues: readonly string[]) => void;
}

/** Work of one call. It may run twice when a batch is run apart, so it must not reach outside its session. */
type Work = (engine: Engine, connection: SqlConnection, session: SqliteSession) => unknown;

interface Call {
  readonly work: Work;
  /** Never runs twice: it calls back into the program. */
  readonly alone: boolean;
  readonly answer: (value: unknown) => void;
  readonly fail: (error: unknown) => void;
}

/** The commit itself failed; the answers are right if it took effect all the same. */
class CommitFailed extends Error {
  readonly answers: readonly unknown[];

  constructor(cause: unknown, answers: readonly unknown[]) {
    super('a commit failed', { cause });
    this.answers = answers;
  }
}

/** Calls in one commit. Above it the time a commit blocks the event loop would grow without making it cheaper. */
const BATCH_MAX = 500;
/** How many commits of our own leave the lock free for a moment after another process has committed. */
const POLITE_COMMITS = 50;

export class Commits {
  readonly catalogue: Catalogue = new Catalogue();
  readonly #options: CommitOptions;
  #connection: SqlConnection | null;
  #sql: Statements;
  #calls: Call[] = [];
  #scheduled = false;
  #busyAttempts = 0;
  #commits = 0;
  #polite = 0;
  #dataVersion = 0;
  #closed = false;
  #idle: (() => void) | null = null;

  constructor(connection: SqlConnection, options: CommitOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#sql = prepareStatements(connection);
    this.#dataVersion = this.#readDataVersion();
  }

  /** Runs work in a write transaction and answers with what it returned, once that is durable. */
  submit<Value>(
    work: (engine: Engine, connection: SqlConnection, session: SqliteSession) => Value,
    alone = false,
  ): Promise<Value> {
    if (this.#closed) return Promise.reject(new StoreClosedError());
    return new Promise<Value>((resolve, reject) => {
      const answer = resolve as (value: unknown) => void;
      this.#calls.push({ work, alone, answer, fail: reject });
      this.#schedule();
    });
  }

  /** Whether another process has committed since this was last asked, or since our own last commit. */
  foreignCommit(): boolean {
    if (this.#connection === null) return false;
    const seen = this.#readDataVersion();
    const foreign = seen !== this.#dataVersion;
    this.#dataVersion = seen;
    if (foreign) this.#polite = POLITE_COMMITS;
    return foreign;
  }

  /** Refuses calls from now on. */
  refuse(): void {
    this.#closed = true;
  }

  /** Resolves when the calls already made are answered. */
  async drained(): Promise<void> {
    if (!this.#scheduled && this.#calls.length === 0) return;
    await new Promise<void>((resolve) => {
      this.#idle = resolve;
    });
  }

  close(): void {
    this.#connection?.close();
    this.#connection = null;
  }

  #schedule(waitMs?: number): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    const run = (): void => {
      void this.#flush();
    };
    if (waitMs === undefined) setImmediate(run);
    else setTimeout(run, waitMs);
  }

  async #flush(): Promise<void> {
    const batch = this.#nextBatch();
    let retryMs: number | undefined;
    try {
      this.#commit(batch);
      this.#busyAttempts = 0;
      // Leaves the lock to the other process that has shown itself; without this the faster one takes all.
      if (this.#polite > 0) {
        this.#polite -= 1;
        retryMs = 0.5 + 1.5 * this.#options.random();
      }
    } catch (error) {
      if (isBusy(error) && this.#busyAttempts < BUSY_ATTEMPTS_MAX) {
        this.#busyAttempts += 1;
        this.#calls.unshift(...batch);
        retryMs = 0.2 + 3.8 * this.#options.random();
      } else {
        this.#busyAttempts = 0;
        await this.#recover(batch, error);
      }
    }
    this.#scheduled = false;
    if (this.#calls.length > 0) this.#schedule(retryMs);
    else this.#idle?.();
  }

  #nextBatch(): Call[] {
    const alone = this.#calls.findIndex((call) => call.alone);
    const count = alone === 0 ? 1 : alone === -1 ? BATCH_MAX : Math.min(alone, BATCH_MAX);
    return this.#calls.splice(0, count);
  }

  /** One transaction. Throws when nothing of it was stored, and then nobody was answered. */
  #commit(batch: readonly Call[]): void {
    const connection = this.#connection;
    if (connection === null) throw new StorageFailedError(this.#options.path, 'its connection was closed');
    this.foreignCommit();
    connection.exec('begin immediate');
    const answers: unknown[] = [];
    let session: SqliteSession;
    try {
      session = this.#openSession();
      const engine = new Engine(session);
      for (const call of batch) answers.push(call.work(engine, connection, session));
      session.flush();
      if (session.changed) this.#count(session);
    } catch (error) {
      this.#rollback(connection);
      throw error;
    }
    if (session.changed) this.#commitNow(connection, answers);
    else connection.exec('rollback');
    this.#dataVersion = this.#readDataVersion();
    for (const [index, call] of batch.entries()) call.answer(answers[index]);
    if (session.changed) this.#options.committed([...session.woken]);
  }

  /** A commit that fails with its transaction still open has not happened; one that fails otherwise says nothing. */
  #commitNow(connection: SqlConnection, answers: readonly unknown[]): void {
    try {
      connection.exec('commit');
      this.#commits += 1;
    } catch (error) {
      if (!connection.inTransaction) throw new CommitFailed(error, answers);
      this.#rollback(connection);
      throw error;
    }
  }

  #readDataVersion(): number {
    const row = this.#sql.dataVersion.get();
    return row === undefined ? 0 : new Columns(row).number('data_version');
  }

  #rollback(connection: SqlConnection): void {
    if (connection.inTransaction) connection.exec('rollback');
    this.catalogue.forget();
  }

  /**
   * The clock, not below the tick of the last commit. One found further behind than the tolerance is followed: leases
   * reckoned from the future it had been in are cut, and every job it had touched records that.
   */
  #openSession(): SqliteSession {
    const row = this.#sql.counter.get();
    if (row === undefined) throw new StorageFailedError(this.#options.path, 'its counters are missing');
    const columns = new Columns(row);
    const sealedTo = columns.textOrNull('sealed_to');
    if (sealedTo !== null) throw new StoreSealedError(sealedTo);
    this.catalogue.enter(columns.number('epoch'));
    const lastTick = columns.number('last_tick');
    const read = readClock(this.#options.clock);
    const held = read < lastTick && lastTick - read <= limits.clockToleranceMs;
    const now = held ? lastTick : read;
    const session = new SqliteSession(
      this.#sql,
      this.catalogue,
      { nextId: columns.number('next_id'), nextToken: columns.number('next_token') },
      { now, keepKeysForMs: columns.number('keep_keys_for_ms'), randomId: this.#options.randomId },
    );
    if (now < lastTick) followClock(session);
    return session;
  }

  #count(session: SqliteSession): void {
    const { nextId, nextToken } = session.counter;
    this.#sql.setCounter.run(nextId, nextToken, session.lastTick);
    this.#sql.setWriter.run(this.#options.writer, this.#commits + 1, session.now);
  }

  /** After a failed transaction: run its members apart, so that one cannot fail the others; or find out what happened. */
  async #recover(batch: readonly Call[], error: unknown): Promise<void> {
    const { path } = this.#options;
    if (error instanceof CommitFailed) {
      await this.#reopen(batch, storageError(error.cause, path), error.answers);
      return;
    }
    const mapped = isBusy(error)
      ? new StorageBusyError(path, BUSY_ATTEMPTS_MAX * 2)
      : storageError(error, path);
    if (mapped === error && batch.length > 1) this.#runApart(batch);
    else if (mapped instanceof StorageFailedError) await this.#reopen(batch, mapped, null);
    else for (const call of batch) call.fail(mapped);
  }

  #runApart(batch: readonly Call[]): void {
    for (const call of batch) {
      try {
        this.#commit([call]);
      } catch (error) {
        if (isBusy(error)) this.#calls.push(call);
        else call.fail(storageError(error, this.#options.path));
      }
    }
  }

  /** A failed commit or sync says nothing of what is on the disk: the file is opened anew and our own row is read. */
  async #reopen(batch: readonly Call[], error: unknown, answers: readonly unknown[] | null): Promise<void> {
    try {
      this.#connection?.close();
    } catch {
      // It failed before; what counts is what the new connection reads.
    }
    this.#connection = null;
    this.catalogue.forget();
    let committed: number;
    try {
      this.#connection = await this.#options.reopen();
      this.#sql = prepareStatements(this.#connection);
      const row = this.#sql.writer.get(this.#options.writer);
      committed = row === undefined ? 0 : new Columns(row).number('commits');
    } catch {
      const unknown = answers === null ? error : new OutcomeUnknownError(this.#options.path);
      for (const call of batch) call.fail(unknown);
      return;
    }
    const tookEffect = answers !== null && committed > this.#commits;
    this.#commits = committed;
    for (const [index, call] of batch.entries()) {
      if (tookEffect) call.answer(answers[index]);
      else call.fail(error);
    }
  }
}

function followClock(session: SqliteSession): void {
  const engine = new Engine(session);
  for (const id of session.liveIds()) {
    const row = engine.rowOf(id);
    const cut = { ...row, job: cutLease(row.job, engine.now) };
    session.write(row, cut);
    engine.lapseRow(cut);
  }
  session.unripen();
}
