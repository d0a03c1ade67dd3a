/** One transaction under a held token: effects, steps, enqueues and the settlement commit together, or nothing does. */
import { type Command, custodyOf, type Job, limits, type Refusal, STATE } from '../../core/index.ts';
import { sha256Hex } from '../../evidence/index.ts';
import { InvalidInputError } from '../errors.ts';
import { readJson, readName, readRequests } from '../input.ts';
import type { EffectPlace, EffectRow } from '../session.ts';
import type { ApplicationState, EnqueueVerdict, Holder, StoreTransaction, Transacted } from '../store.ts';
import { admitAll } from './admission.ts';
import { settleOne } from './custody.ts';
import { detach } from './detach.ts';
import { type Engine, NO_CONTEXT } from './engine.ts';

/** Thrown to roll the transaction back with a refusal as its answer. */
class RefusedInTransaction extends Error {
  readonly refused: Refusal;

  constructor(refused: Refusal) {
    super(refused);
    this.refused = refused;
  }
}

/** What the custody check of a transaction came to, after the lapse that was due was written. */
export type Admitted = { readonly ok: true } | Extract<Transacted<never>, { ok: false }>;

/**
 * Lapses the job and says whether the holder may go on. It runs in a commit of its own, so that the lapse stands even
 * when what `apply` does is rolled back.
 */
export function admitHolder(engine: Engine, holder: Holder): Admitted {
  const row = engine.session.row(holder.id);
  if (row === undefined) return { ok: false, refused: 'unknown_job', job: null };
  const { job } = engine.lapseRow(row);
  const custody = custodyOf(job, holder.token);
  if (typeof custody === 'string') return { ok: false, refused: custody, job };
  return job.state === STATE.RUNNING ? { ok: true } : { ok: false, refused: 'wrong_state', job };
}

/**
 * Runs `apply` inside the open transaction. Throws what `apply` throws, and for a refusal of one of its calls something
 * that `refusalOf` reads; either way the session has to roll back.
 */
export function run<Value>(
  engine: Engine,
  holder: Holder,
  application: () => ApplicationState,
  apply: (tx: StoreTransaction) => Value,
): Value {
  // Asked again under this transaction's lock: between the two commits the lease may have ended, or gone to another.
  const held = engine.lapseRow(engine.rowOf(holder.id));
  const custody = custodyOf(held.job, holder.token);
  if (typeof custody === 'string') throw new RefusedInTransaction(custody);
  const tx = new EngineTransaction(engine, holder, application);
  try {
    const value = apply(tx);
    refusePromise(value, 'apply');
    tx.assertWhole();
    return value;
  } finally {
    tx.end();
  }
}

/** The refusal a rolled back transaction is answered with; anything else that was thrown goes on. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof RefusedInTransaction) return error.refused;
  throw error;
}

/** A promise would go on after the commit; its rejection is observed so that it cannot end the process as well. */
function refusePromise(value: unknown, field: string): void {
  if (typeof value !== 'object' || value === null || !('then' in value)) return;
  if (value instanceof Promise) value.catch(() => undefined);
  throw new InvalidInputError(field, 'must be synchronous; await before the transaction, not inside it');
}

class EngineTransaction implements StoreTransaction {
  readonly now: number;
  readonly #engine: Engine;
  readonly #application: () => ApplicationState;
  readonly #holder: Holder;
  #over: 'open' | 'settled' | 'ended' = 'open';
  #applying = false;
  #failure: { readonly error: unknown } | null = null;

  constructor(engine: Engine, holder: Holder, application: () => ApplicationState) {
    this.#engine = engine;
    this.#holder = holder;
    this.now = engine.now;
    this.#application = application;
  }

  get application(): ApplicationState {
    this.#assertLive();
    return this.#application();
  }

  get job(): Job {
    this.#assertLive();
    return detach(this.#engine.rowOf(this.#holder.id).job);
  }

  commitEffect(
    key: string,
    descriptor: unknown,
    apply: () => unknown,
  ): { duplicate: boolean; result: unknown } {
    return this.#call(() => this.#commitEffect(key, descriptor, apply));
  }

  #commitEffect(
    key: string,
    descriptor: unknown,
    apply: () => unknown,
  ): { duplicate: boolean; result: unknown } {
    const mark = this.#markOf(key, 'commit', descriptor);
    if (mark.stored !== null) {
      // Decided before `apply` runs: a conflict must not leave half an effect to roll back.
      this.#decide({ type: 'commit_effect', ...mark.asked, result: sha256Hex('null') }, mark.stored);
      return { duplicate: true, result: parse(mark.stored.result) };
    }
    const result = this.#apply(apply);
    refusePromise(result, 'apply');
    const text = readJson(result ?? null, 'result');
    this.#decide({ type: 'commit_effect', ...mark.asked, result: sha256Hex(text) }, null);
    this.#store(mark, { done: true, result: text });
    return { duplicate: false, result: parse(text) };
  }

  beginStep(
    key: string,
    step: { readonly descriptor: unknown; readonly idempotent: boolean },
  ): { readonly status: 'begun' } | { readonly status: 'done'; readonly result: unknown } {
    return this.#call(() => this.#beginStep(key, step));
  }

  #beginStep(
    key: string,
    step: { readonly descriptor: unknown; readonly idempotent: boolean },
  ): { readonly status: 'begun' } | { readonly status: 'done'; readonly result: unknown } {
    if (typeof step.idempotent !== 'boolean')
      throw new InvalidInputError('idempotent', 'must be true or false');
    const mark = this.#markOf(key, 'step', step.descriptor);
    const command = { type: 'begin_step', ...mark.asked, idempotent: step.idempotent } as const;
    const duplicate = this.#decide(command, mark.stored);
    if (duplicate) return { status: 'done', result: parse(mark.stored?.result ?? null) };
    this.#store(mark, { done: false, result: null });
    return { status: 'begun' };
  }

  finishStep(key: string, result: unknown): void {
    this.#call(() => this.#finishStep(key, result));
  }

  #finishStep(key: string, result: unknown): void {
    const { token } = this.#holder;
    const text = readJson(result ?? null, 'result');
    readName(key, 'key', limits.effectKeyBytesMax);
    const stored = this.#engine.session.effect(this.#place(key)) ?? null;
    const duplicate = this.#decide({ type: 'finish_step', token, key, result: sha256Hex(text) }, stored);
    if (stored !== null && !duplicate) {
      this.#engine.session.setEffect({ ...stored, done: true, result: text });
    }
  }

  enqueue(requests: Parameters<StoreTransaction['enqueue']>[0]): readonly EnqueueVerdict[] {
    return this.#call(() => detach(admitAll(this.#engine, readRequests(requests))));
  }

  settle(settlement: Parameters<StoreTransaction['settle']>[0]): Job {
    return this.#call(() => this.#settle(settlement));
  }

  #settle(settlement: Parameters<StoreTransaction['settle']>[0]): Job {
    const { id, token } = this.#holder;
    const worker = this.#engine.rowOf(id).job.lease?.worker ?? '';
    const verdict = settleOne(this.#engine, { ...settlement, id, token, worker }, 'settlement');
    if (!verdict.ok) throw new RefusedInTransaction(verdict.refused);
    this.#over = 'settled';
    return detach(verdict.job);
  }

  end(): void {
    this.#over = 'ended';
  }

  /**
   * Runs one call. Whatever it throws spoils the transaction, also when `apply` catches it: a call that failed has not
   * happened, half of it must not stay, and the rest may have been meant to go with it.
   */
  #call<Value>(work: () => Value): Value {
    try {
      this.#assertLive();
      if (this.#over === 'settled') {
        throw new InvalidInputError('tx', 'settling comes last: nothing may follow it');
      }
      if (this.#applying) throw new InvalidInputError('tx', 'an effect is being applied: finish it first');
      return work();
    } catch (error) {
      this.#failure ??= { error };
      throw error;
    }
  }

  #apply(apply: () => unknown): unknown {
    this.#applying = true;
    try {
      return apply();
    } finally {
      this.#applying = false;
    }
  }

  /** Throws what the first failed call threw. */
  assertWhole(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }

  /** Who kept a transaction beyond its end holds nothing: neither the job nor the program's state. */
  #assertLive(): void {
    if (this.#over === 'ended') throw new InvalidInputError('tx', 'its transaction is over');
  }

  #place(key: string): EffectPlace {
    const { job } = this.#engine.rowOf(this.#holder.id);
    return { lineage: job.submission.lineage, occurrence: job.occurrence, key };
  }

  /** The mark a key stands for. Commits and steps never share one: the kind of effect is part of its descriptor. */
  #markOf(
    key: string,
    type: 'commit' | 'step',
    descriptor: unknown,
  ): {
    readonly asked: { readonly token: number; readonly key: string; readonly descriptor: string };
    readonly type: 'commit' | 'step';
    readonly stored: EffectRow | null;
  } {
    readName(key, 'key', limits.effectKeyBytesMax);
    const digest = sha256Hex(`${type}:${readJson(descriptor ?? null, 'descriptor')}`);
    const stored = this.#engine.session.effect(this.#place(key)) ?? null;
    return { asked: { token: this.#holder.token, key, descriptor: digest }, type, stored };
  }

  #decide(command: Command, mark: EffectRow | null): boolean {
    const result = mark?.result == null ? null : sha256Hex(mark.result);
    const effect = mark === null ? null : { descriptor: mark.descriptor, result };
    const row = this.#engine.rowOf(this.#holder.id);
    const decision = this.#engine.decide(row, command, { ...NO_CONTEXT, effect });
    if (!decision.accepted) throw new RefusedInTransaction(decision.refused);
    return decision.duplicate;
  }

  #store(
    mark: {
      readonly asked: { readonly key: string; readonly descriptor: string };
      readonly type: EffectRow['type'];
    },
    state: Pick<EffectRow, 'done' | 'result'>,
  ): void {
    const { job } = this.#engine.rowOf(this.#holder.id);
    const { key, descriptor } = mark.asked;
    this.#engine.session.setEffect({
      ...this.#place(key),
      type: mark.type,
      descriptor,
      jobId: job.id,
      token: this.#holder.token,
      ...state,
    });
  }
}

function parse(text: string | null): unknown {
  return text === null ? null : (JSON.parse(text) as unknown);
}
