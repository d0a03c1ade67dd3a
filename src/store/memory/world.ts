/** What all verbs of the memory store share: one clock rule, one transaction, one place where decisions become rows. */
import {
  type Ask,
  type Command,
  type Context,
  consequencesOf,
  cutLease,
  type Decision,
  decide,
  everRan,
  type Fact,
  initialJob,
  internalKey,
  internalPayload,
  internalSubmission,
  isTick,
  type Job,
  lapse,
  limits,
  type Submission,
  stateIsTerminal,
} from '../../core/index.ts';
import { appendFacts, newChain, sha256Hex } from '../../evidence/index.ts';
import { StoreClosedError, StoreSealedError } from '../errors.ts';
import type { Told } from '../input.ts';
import type { Act, ApplicationState, Settlement, Testimony, Wake } from '../store.ts';
import { ClaimIndex } from './claim-index.ts';
import { effectRowKey, type Row, Tables } from './tables.ts';

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

/** Facts a store asserts when nothing of them applies to a command. */
export const NO_CONTEXT: Context = { laneHead: false, queuePaused: false, claimer: null, effect: null };

/** The state of one memory store and the only ways to change it. */
export class World {
  readonly options: MemoryStoreOptions;
  readonly keepKeysForMs: number;
  readonly tables: Tables = new Tables();
  readonly index: ClaimIndex = new ClaimIndex((id) => this.tables.rows.get(id));
  readonly wakes: Set<Wake> = new Set();
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
  }

  /** Runs a changing verb: all of it or nothing. Nothing can come between, since `work` is synchronous. */
  atomically<Value>(work: () => Value): Value {
    this.assertOpen();
    if (this.tables.sealedTo !== null) throw new StoreSealedError(this.tables.sealedTo);
    if (this.#inTransaction) throw new Error('a verb was called inside a transaction of the same store');
    this.#inTransaction = true;
    this.tables.begin();
    try {
      const value = work();
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

  /** Tells listeners of queues with new work, after the commit; what they throw is theirs and disturbs nobody. */
  wake(): void {
    if (this.#woken.size === 0) return;
    const queues = [...this.#woken];
    this.#woken.clear();
    for (const wake of this.wakes) {
      try {
        wake({ queues });
      } catch {
        // A listener is a hint's receiver: the commit it hears of has happened.
      }
    }
  }

  /**
   * The clock, not below the tick of the last commit. One found further behind than the tolerance is followed: the
   * future it had been in is not a rule, so leases reckoned from it are cut, and every job it had touched records that.
   */
  now(): number {
    const read = this.options.clock();
    if (!isTick(read)) throw new Error('the clock did not answer a whole number of milliseconds');
    const { lastTick } = this.tables.counters;
    if (read < lastTick && lastTick - read <= limits.clockToleranceMs) return lastTick;
    this.tables.counters = { ...this.tables.counters, lastTick: read };
    if (read < lastTick) this.#followClock(read);
    return read;
  }

  #followClock(now: number): void {
    for (const row of [...this.tables.rows.values()]) {
      if (stateIsTerminal(row.job.state)) continue;
      const cut = { ...row, job: cutLease(row.job, now) };
      this.#write(row, cut);
      this.lapseRow(cut, now);
    }
  }

  /** Decides a command on a row and writes what follows. */
  decide(row: Row, command: Command, context: Context, now: number, told: readonly Told[] = []): Decision {
    const decision = decide(row.job, command, context, now);
    if (decision.job !== row.job) this.persist(row, decision.job, decision.facts, decision.asks, now, told);
    return decision;
  }

  /** Lapses a row if it is overdue; the row as it is afterwards. */
  lapseRow(row: Row, now: number): Row {
    const { job, facts } = lapse(row.job, now);
    if (facts.length === 0) return row;
    return this.persist(row, job, facts, consequencesOf(row.job, job, now), now, []);
  }

  /** Lapses what is overdue, up to `limit` jobs. */
  lapseOverdue(now: number, limit: number): number[] {
    const ids: number[] = [];
    for (let row = this.index.nextOverdue(now); row !== null && ids.length < limit; ) {
      this.lapseRow(row, now);
      ids.push(row.job.id);
      row = this.index.nextOverdue(now);
    }
    return ids;
  }

  /** Writes a decided job with its facts and everything that has to happen in the same commit. */
  persist(
    before: Row,
    job: Job,
    facts: readonly Fact[],
    asks: readonly Ask[],
    now: number,
    told: readonly Told[],
  ): Row {
    const texts =
      told.length === 0
        ? before.texts
        : { ...before.texts, ...Object.fromEntries(told.map(({ digest, text }) => [digest, text])) };
    const row: Row = {
      ...before,
      job,
      chain: appendFacts(before.chain, facts),
      texts,
      claimRequestId: job.lease === null ? null : before.claimRequestId,
    };
    this.#write(before, row);
    for (const ask of asks) this.#enact(row, ask, now);
    return row;
  }

  /** Replaces columns of a row that no decision is about. */
  amend(row: Row, columns: Partial<Omit<Row, 'job' | 'chain'>>): Row {
    const amended = { ...row, ...columns };
    this.#write(row, amended);
    return amended;
  }

  /** Stores a new job under the next id. */
  admit(submission: Submission, payload: string): Row {
    const id = this.tables.counters.nextId;
    this.tables.counters = { ...this.tables.counters, nextId: id + 1 };
    const row: Row = {
      job: initialJob(id, submission),
      payload,
      chain: newChain(submission),
      texts: {},
      claimRequestId: null,
      reportDigest: null,
      redrivenTo: null,
      dismissed: null,
      testimony: [],
    };
    const { idempotencyKey: key, descriptor, requestId } = submission;
    if (key !== null) this.tables.keys.set(key, { key, descriptor, jobId: id, keepUntil: null });
    if (requestId !== null) this.tables.requests.set(requestId, id);
    this.#write(undefined, row);
    return row;
  }

  /** The next fencing token; never given twice, whatever becomes of the job. */
  takeToken(): number {
    const token = this.tables.counters.nextToken;
    this.tables.counters = { ...this.tables.counters, nextToken: token + 1 };
    return token;
  }

  /** Keeps a report that came too late; the same one again, and more than the bound, add nothing. */
  testify(row: Row, testimony: Testimony): void {
    const { token, outcome, digest } = testimony;
    const known = row.testimony.some(
      (one) => one.token === token && one.outcome === outcome && one.digest === digest,
    );
    if (known || row.testimony.length >= limits.testimonyPerJobMax) return;
    this.amend(row, { testimony: [...row.testimony, testimony] });
  }

  act(act: Act['act'], now: number, by: { actor: string; reason: string | null }, detail: string): void {
    const number = this.tables.acts.size;
    const { actor, reason } = by;
    this.tables.acts.set(number, { act, tick: now, actor, reason, detail });
  }

  isPaused(queue: string): boolean {
    return (this.tables.queues.get(queue)?.paused ?? null) !== null;
  }

  /** How far the compensation of a job's last attempt is. */
  compensationOf(job: Job): Row | null {
    if (!everRan(job)) return null;
    const key = internalKey({ purpose: 'compensate', parentId: job.id, parentToken: job.token });
    const id = this.tables.keys.get(key)?.jobId;
    return id === undefined ? null : (this.tables.rows.get(id) ?? null);
  }

  /** What a decision to retry says of open steps becomes their mark: done with its result, or never begun. */
  markSteps(job: Job, steps: readonly { key: string; tookPlace: boolean; text: string | null }[]): void {
    const { effects } = this.tables;
    for (const step of steps) {
      const key = effectRowKey(job.submission.lineage, job.occurrence, step.key);
      const mark = effects.get(key);
      if (mark === undefined) continue;
      if (step.tookPlace) effects.set(key, { ...mark, done: true, result: step.text });
      else effects.delete(key);
    }
  }

  #write(before: Row | undefined, after: Row): void {
    this.tables.rows.set(after.job.id, after);
    this.index.moved(before, after);
    this.#woken.add(after.job.submission.queue);
    const ended = before?.job.endedAt == null && after.job.endedAt !== null;
    const key = after.job.submission.idempotencyKey;
    const row = ended && key !== null ? this.tables.keys.get(key) : undefined;
    if (row !== undefined && after.job.endedAt !== null) {
      this.tables.keys.set(row.key, { ...row, keepUntil: after.job.endedAt + this.keepKeysForMs });
    }
  }

  #enact(parent: Row, ask: Ask, now: number): void {
    const purpose = ask.ask === 'enqueue_compensate' ? 'compensate' : 'reconcile';
    const link = { purpose, parentId: parent.job.id, parentToken: ask.token } as const;
    const existing = this.tables.keys.get(internalKey(link));
    if (ask.ask === 'cancel_reconcile') {
      const internal = existing === undefined ? undefined : this.tables.rows.get(existing.jobId);
      if (internal === undefined) return;
      const command = { type: 'cancel', actor: 'custody', reason: null, version: null } as const;
      this.decide(internal, command, NO_CONTEXT, now);
      return;
    }
    if (existing !== undefined) return;
    const context = { now, lineage: this.options.randomId(), sha256: sha256Hex };
    this.admit(internalSubmission(parent.job, link, ask.startAt, context), internalPayload(link));
  }
}

/** Testimony as it is kept, from the settlement that was refused. */
export function testimonyOf(
  settlement: Pick<Settlement, 'id' | 'worker' | 'token' | 'outcome'>,
  told: Told,
  now: number,
  chained: boolean,
): Testimony {
  const { id, worker, token, outcome } = settlement;
  return { id, tick: now, worker, token, outcome, digest: told.digest, report: told.text, chained };
}
