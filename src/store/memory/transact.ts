/** One transaction under a held token: effects, steps, enqueues and the settlement commit together, or nothing does. */
import {
  type Asked,
  type Command,
  canonicalJson,
  custodyOf,
  deepCopyJson,
  limits,
  type Refusal,
  STATE,
} from '../../core/index.ts';
import { sha256Hex } from '../../evidence/index.ts';
import { InvalidInputError } from '../errors.ts';
import { readJson, readName, readRequests } from '../input.ts';
import type { ApplicationState, EnqueueVerdict, Holder, StoreTransaction, Transacted } from '../store.ts';
import { admitAll } from './admission.ts';
import { rowOf, settleOne } from './custody.ts';
import { type EffectRow, effectRowKey, type Row } from './tables.ts';
import { NO_CONTEXT, type World } from './world.ts';

/** Thrown to roll the transaction back with a refusal as its answer. */
class RefusedInTransaction extends Error {
  readonly refused: Refusal;

  constructor(refused: Refusal) {
    super(refused);
    this.refused = refused;
  }
}

/**
 * Runs `apply` for the holder. A lapse that is due is written first, in a commit of its own, so that it stands even when
 * `apply` throws.
 */
export function transact<Value>(
  world: World,
  holder: Holder,
  apply: (tx: StoreTransaction) => Value,
): Transacted<Value> {
  const lapsed = world.atomically(() => {
    const row = world.tables.rows.get(holder.id);
    const now = world.now();
    return row === undefined ? null : world.lapseRow(row, now);
  });
  if (lapsed === null) return { ok: false, refused: 'unknown_job', job: null };
  const custody = custodyOf(lapsed.job, holder.token);
  if (typeof custody === 'string') return { ok: false, refused: custody, job: lapsed.job };
  if (lapsed.job.state !== STATE.RUNNING) return { ok: false, refused: 'wrong_state', job: lapsed.job };
  const before = deepCopyJson(world.application) as ApplicationState;
  try {
    const value = world.atomically(() => run(world, holder, apply));
    return { ok: true, value, job: rowOf(world, holder.id).job };
  } catch (error) {
    world.application = before;
    if (!(error instanceof RefusedInTransaction)) throw error;
    return { ok: false, refused: error.refused, job: rowOf(world, holder.id).job };
  }
}

function run<Value>(world: World, holder: Holder, apply: (tx: StoreTransaction) => Value): Value {
  const tx = new MemoryTransaction(world, holder);
  try {
    const value = apply(tx);
    refusePromise(value, 'apply');
    // Also when `apply` caught it: a refused call has not happened, and the rest may have been meant to go with it.
    if (tx.refused !== null) throw new RefusedInTransaction(tx.refused);
    world.application = tx.checkedApplication();
    return value;
  } finally {
    tx.end();
  }
}

/** A promise would go on after the commit; its rejection is observed so that it cannot end the process as well. */
function refusePromise(value: unknown, field: string): void {
  if (typeof value !== 'object' || value === null || !('then' in value)) return;
  if (value instanceof Promise) value.catch(() => undefined);
  throw new InvalidInputError(field, 'must be synchronous; await before the transaction, not inside it');
}

class MemoryTransaction implements StoreTransaction {
  readonly now: number;
  readonly application: ApplicationState;
  refused: Refusal | null = null;
  readonly #world: World;
  readonly #holder: Holder;
  #over: 'open' | 'settled' | 'ended' = 'open';

  constructor(world: World, holder: Holder) {
    this.#world = world;
    this.#holder = holder;
    this.now = world.now();
    this.application = world.application;
  }

  get job(): Row['job'] {
    return structuredClone(rowOf(this.#world, this.#holder.id).job);
  }

  commitEffect(
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
    const result = apply();
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
    this.#assertOpen();
    const { token } = this.#holder;
    const text = readJson(result ?? null, 'result');
    readName(key, 'key', limits.effectKeyBytesMax);
    const place = this.#place(key);
    this.#decide({ type: 'finish_step', token, key, result: sha256Hex(text) }, null);
    const stored = this.#world.tables.effects.get(place);
    if (stored !== undefined) this.#world.tables.effects.set(place, { ...stored, done: true, result: text });
  }

  enqueue(requests: Parameters<StoreTransaction['enqueue']>[0]): readonly EnqueueVerdict[] {
    this.#assertOpen();
    const asked: readonly Asked[] = readRequests(requests);
    return structuredClone(admitAll(this.#world, asked, this.now));
  }

  settle(settlement: Parameters<StoreTransaction['settle']>[0]): Row['job'] {
    this.#assertOpen();
    const { id, token } = this.#holder;
    const worker = rowOf(this.#world, id).job.lease?.worker ?? '';
    const verdict = settleOne(this.#world, { ...settlement, id, token, worker }, 'settlement', this.now);
    if (!verdict.ok) throw this.#refuse(verdict.refused);
    this.#over = 'settled';
    return structuredClone(verdict.job);
  }

  /** The program's state as it may be kept: JSON, and sharing nothing with what `apply` put in. */
  checkedApplication(): ApplicationState {
    const bounds = { maxDepth: limits.payloadDepthMax, maxBytes: Number.MAX_SAFE_INTEGER };
    const canonical = canonicalJson(this.application, bounds);
    if (canonical.ok) return deepCopyJson(this.application) as ApplicationState;
    throw new InvalidInputError('application', `${canonical.problem} at ${canonical.path}`);
  }

  end(): void {
    this.#over = 'ended';
  }

  #assertOpen(): void {
    if (this.#over === 'ended') throw new InvalidInputError('tx', 'its transaction is over');
    if (this.#over === 'settled')
      throw new InvalidInputError('tx', 'settling comes last: nothing may follow it');
  }

  #place(key: string): string {
    const { job } = rowOf(this.#world, this.#holder.id);
    return effectRowKey(job.submission.lineage, job.occurrence, key);
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
    this.#assertOpen();
    readName(key, 'key', limits.effectKeyBytesMax);
    const digest = sha256Hex(`${type}:${readJson(descriptor ?? null, 'descriptor')}`);
    const stored = this.#world.tables.effects.get(this.#place(key)) ?? null;
    return { asked: { token: this.#holder.token, key, descriptor: digest }, type, stored };
  }

  #decide(command: Command, effect: { readonly descriptor: string } | null): boolean {
    const row = rowOf(this.#world, this.#holder.id);
    const decision = this.#world.decide(row, command, { ...NO_CONTEXT, effect }, this.now);
    if (!decision.accepted) throw this.#refuse(decision.refused);
    return decision.duplicate;
  }

  #refuse(refused: Refusal): RefusedInTransaction {
    this.refused ??= refused;
    return new RefusedInTransaction(refused);
  }

  #store(
    mark: {
      readonly asked: { readonly key: string; readonly descriptor: string };
      readonly type: EffectRow['type'];
    },
    state: Pick<EffectRow, 'done' | 'result'>,
  ): void {
    const { job } = rowOf(this.#world, this.#holder.id);
    const { key, descriptor } = mark.asked;
    this.#world.tables.effects.set(this.#place(key), {
      lineage: job.submission.lineage,
      occurrence: job.occurrence,
      key,
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
