/** The memory store's tables: all or nothing, so that a verb which throws half-way leaves every row as it was. */
import type { DefinitionRecord, Job } from '../../core/index.ts';
import type { Chain } from '../../evidence/index.ts';
import type { Act, Testimony } from '../store.ts';

/** One job with everything that lies beside it. Rows are replaced, never changed. */
export interface Row {
  readonly job: Job;
  readonly payload: string;
  readonly chain: Chain;
  /** Results, reasons and reports by their digest. */
  readonly texts: Readonly<Record<string, string>>;
  /** The claim that gave the current lease. */
  readonly claimRequestId: string | null;
  /** Digest of the last accepted report. */
  readonly reportDigest: string | null;
  readonly redrivenTo: number | null;
  readonly dismissed: DismissedRow | null;
  readonly testimony: readonly Testimony[];
}

export interface DismissedRow {
  readonly actor: string;
  readonly reason: string | null;
  readonly tick: number;
}

/** An idempotency key; it outlives its job. `keepUntil` is null while the job is unresolved. */
export interface KeyRow {
  readonly key: string;
  readonly descriptor: string;
  readonly jobId: number;
  readonly keepUntil: number | null;
}

/** The mark of an effect: a commit is always done, a step is begun before it is done. */
export interface EffectRow {
  readonly lineage: string;
  readonly occurrence: number;
  readonly key: string;
  readonly type: 'commit' | 'step';
  readonly done: boolean;
  readonly descriptor: string;
  /** Canonical JSON text; null until done. */
  readonly result: string | null;
  readonly jobId: number;
  readonly token: number;
}

export interface QueueRow {
  readonly queue: string;
  readonly maxUnresolved: number | null;
  readonly paused: DismissedRow | null;
}

export interface WorkerRow {
  readonly worker: string;
  readonly seenAt: number;
  readonly definitions: readonly { readonly kind: string; readonly revision: number }[];
}

/** Numbers that only rise within one life of the store. */
export interface Counters {
  readonly nextId: number;
  readonly nextToken: number;
  readonly lastTick: number;
}

/** A map that can take back everything written since a transaction began. */
export class Table<Key, Value> {
  readonly #values = new Map<Key, Value>();
  #undo: [Key, Value | undefined][] = [];

  get(key: Key): Value | undefined {
    return this.#values.get(key);
  }

  set(key: Key, value: Value): void {
    this.#undo.push([key, this.#values.get(key)]);
    this.#values.set(key, value);
  }

  delete(key: Key): void {
    this.#undo.push([key, this.#values.get(key)]);
    this.#values.delete(key);
  }

  values(): IterableIterator<Value> {
    return this.#values.values();
  }

  entries(): IterableIterator<[Key, Value]> {
    return this.#values.entries();
  }

  get size(): number {
    return this.#values.size;
  }

  commit(): void {
    this.#undo = [];
  }

  rollback(): void {
    for (const [key, value] of this.#undo.reverse()) {
      if (value === undefined) this.#values.delete(key);
      else this.#values.set(key, value);
    }
    this.#undo = [];
  }
}

/** All tables of one memory store. */
export class Tables {
  readonly rows: Table<number, Row> = new Table();
  readonly keys: Table<string, KeyRow> = new Table();
  readonly requests: Table<string, number> = new Table();
  readonly effects: Table<string, EffectRow> = new Table();
  readonly queues: Table<string, QueueRow> = new Table();
  readonly workers: Table<string, WorkerRow> = new Table();
  readonly definitions: Table<string, DefinitionRecord> = new Table();
  readonly acts: Table<number, Act> = new Table();
  counters: Counters = { nextId: 1, nextToken: 1, lastTick: 0 };
  sealedTo: string | null = null;
  #savedCounters: Counters = this.counters;
  #savedSealedTo: string | null = null;

  begin(): void {
    this.#savedCounters = this.counters;
    this.#savedSealedTo = this.sealedTo;
  }

  commit(): void {
    for (const table of this.#all()) table.commit();
  }

  rollback(): void {
    for (const table of this.#all()) table.rollback();
    this.counters = this.#savedCounters;
    this.sealedTo = this.#savedSealedTo;
  }

  #all(): readonly { commit(): void; rollback(): void }[] {
    const { rows, keys, requests, effects, queues, workers, definitions, acts } = this;
    return [rows, keys, requests, effects, queues, workers, definitions, acts];
  }
}

/** The key under which an effect's mark is stored. */
export function effectRowKey(lineage: string, occurrence: number, key: string): string {
  return JSON.stringify([lineage, occurrence, key]);
}
