/** The memory store's tables: all or nothing, so that a verb which throws half-way leaves every row as it was. */
import type { DefinitionRecord } from '../../core/index.ts';
import type { EffectPlace, EffectRow, KeyRow, QueueRow, Row } from '../session.ts';
import type { Act, Testimony } from '../store.ts';

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
  readonly payloads: Table<number, string> = new Table();
  readonly testimony: Table<number, readonly Testimony[]> = new Table();
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
    const { rows, payloads, testimony, keys, requests, effects, queues, workers, definitions, acts } = this;
    return [rows, payloads, testimony, keys, requests, effects, queues, workers, definitions, acts];
  }
}

/** The key under which an effect's mark is stored. */
export function effectRowKey({ lineage, occurrence, key }: EffectPlace): string {
  return JSON.stringify([lineage, occurrence, key]);
}
