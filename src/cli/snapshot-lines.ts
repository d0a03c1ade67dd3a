/** A snapshot as JSON lines: a head, one line per row, and an end that counts and hashes them, so that half a file is none. */
import { createHash, type Hash } from 'node:crypto';
import type { Snapshot } from '../store/snapshot.ts';
import { CliError } from './errors.ts';
import { safeJson } from './output.ts';

/** Tables of a snapshot that are written a row a line, in this order. */
const TABLES = ['queues', 'definitions', 'jobs', 'keys', 'effects', 'acts'] as const;
type Table = (typeof TABLES)[number];

/** How many lines `snapshotLines` yields. */
export function lineCount(snapshot: Snapshot): number {
  return TABLES.reduce((sum, name) => sum + snapshot[name].length, 2);
}

/**
 * The lines of a snapshot, each with its line feed: `{"snapshot":{...}}`, then `{"jobs":{...}}` and its like, then
 * `{"end":{"rows":N,"digest":"<SHA-256 of all lines before>"}}`.
 */
export function* snapshotLines(snapshot: Snapshot): Generator<string, void, undefined> {
  const hash = createHash('sha256');
  const line = (name: string, value: unknown): string => {
    const text = `${safeJson({ [name]: value })}\n`;
    hash.update(text);
    return text;
  };
  const head: Record<string, unknown> = { ...snapshot };
  for (const name of TABLES) delete head[name];
  let rows = 0;
  yield line('snapshot', head);
  for (const name of TABLES) {
    for (const row of snapshot[name]) {
      rows += 1;
      yield line(name, row);
    }
  }
  yield `${safeJson({ end: { rows, digest: hash.digest('hex') } })}\n`;
}

/** Collects lines back into one object, which is still of unknown origin: a restore proves it. */
export class LineCollector {
  readonly #hash: Hash = createHash('sha256');
  readonly #tables: Record<Table, unknown[]> = {
    queues: [],
    definitions: [],
    jobs: [],
    keys: [],
    effects: [],
    acts: [],
  };
  #head: Readonly<Record<string, unknown>> | null = null;
  #lines = 0;
  #rows = 0;
  #ended = false;

  get rows(): number {
    return this.#rows;
  }

  /** Takes one line without its line feed. */
  add(text: string): void {
    this.#lines += 1;
    if (this.#ended) throw this.#refuse('nothing may follow the end');
    const [name, value] = this.#read(text);
    if (name === 'end') {
      this.#end(value);
      return;
    }
    this.#hash.update(`${text}\n`);
    if (name === 'snapshot' && this.#head === null && this.#lines === 1) {
      this.#head = { ...(value as object) };
      return;
    }
    if (!isTable(name) || this.#head === null) throw this.#refuse(`a line named ${name} has no place here`);
    this.#tables[name].push(value);
    this.#rows += 1;
  }

  /** The whole snapshot; refused unless the end was seen. */
  finish(): unknown {
    if (this.#ended) return { ...this.#head, ...this.#tables };
    throw this.#refuse('the end is missing: the snapshot was cut off');
  }

  #read(text: string): readonly [string, unknown] {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      throw this.#refuse('it is no JSON');
    }
    const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
    const [entry] = entries;
    if (entries.length === 1 && entry !== undefined) return entry;
    throw this.#refuse('it must be an object with one field');
  }

  #end(value: unknown): void {
    const { rows, digest } = { ...(value as { readonly rows?: unknown; readonly digest?: unknown }) };
    if (rows !== this.#rows) throw this.#refuse(`${this.#rows} rows came, and ${String(rows)} were written`);
    if (digest !== this.#hash.digest('hex')) throw this.#refuse('the lines are not those that were written');
    this.#ended = true;
  }

  #refuse(problem: string): CliError {
    const next = 'Use an unaltered snapshot; the store is as it was.';
    return new CliError('refused', 'snapshot_refused', `line ${this.#lines}: ${problem}`, next);
  }
}

function isTable(name: string): name is Table {
  return (TABLES as readonly string[]).includes(name);
}
