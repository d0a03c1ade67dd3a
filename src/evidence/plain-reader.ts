/** Reads plain data of hostile origin into new objects: nothing unknown, missing or out of bounds gets through. */

import { limits } from '../core/limits.ts';
import { nameProblem, type Problem, plainFields } from '../core/request.ts';
import { isDigest } from './hash.ts';

/** A value that was read, or the first field that is not as it must be. */
export type Read<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: Problem };

/** Where the first problem goes; shared by the readers of one value. */
interface Findings {
  problem: Problem | null;
}

/** A rule between fields: when it does not hold, `field` and `problem` say so. */
export type Relation = readonly [holds: boolean, field: string, problem: string];

/**
 * Reads one record at `path`, or names the first problem in it. `read` asks for each field once; a field that it does
 * not ask for is refused. `relations` is asked only about a value whose fields are all well formed.
 */
export function readRecord<Value>(
  value: unknown,
  path: string,
  read: (reader: PlainReader) => Value,
  relations: (value: Value) => readonly Relation[] = () => [],
): Read<Value> {
  const findings: Findings = { problem: null };
  const record = PlainReader.open(value, path, findings, read);
  if (findings.problem !== null) return { ok: false, problem: findings.problem };
  const broken = relations(record).find(([holds]) => !holds);
  if (broken === undefined) return { ok: true, value: record };
  return { ok: false, problem: { field: `${path}.${broken[1]}`, problem: broken[2] } };
}

/** Asks for the fields of one record. What it returns after a problem is never used. */
export class PlainReader {
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #path: string;
  readonly #findings: Findings;
  readonly #asked = new Set<string>();

  private constructor(fields: Readonly<Record<string, unknown>>, path: string, findings: Findings) {
    this.#fields = fields;
    this.#path = path;
    this.#findings = findings;
  }

  static open<Value>(
    value: unknown,
    path: string,
    findings: Findings,
    read: (reader: PlainReader) => Value,
  ): Value {
    const fields = plainFields(value);
    if (fields === null) findings.problem ??= { field: path, problem: 'must be a plain object' };
    const reader = new PlainReader(fields ?? {}, path, findings);
    const record = read(reader);
    const unknown = Object.keys(reader.#fields).find((field) => !reader.#asked.has(field));
    if (unknown !== undefined) reader.refuse(unknown, 'is not a field of it');
    return record;
  }

  refuse<Value>(field: string, problem: string): Value {
    this.#findings.problem ??= { field: `${this.#path}.${field}`, problem };
    return undefined as Value;
  }

  name(field: string, bytesMax: number): string {
    const value = this.take(field);
    const problem = nameProblem(value, bytesMax);
    return problem === null ? (value as string) : this.refuse(field, problem);
  }

  nameOrNull(field: string, bytesMax: number): string | null {
    return this.#isNull(field) ? null : this.name(field, bytesMax);
  }

  whole(field: string, min: number, max: number): number {
    const value = this.take(field);
    const holds = typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max;
    // Adding 0 makes a negative zero the zero that JSON and the chain know.
    return holds ? value + 0 : this.refuse(field, `must be a whole number from ${min} to ${max}`);
  }

  tick(field: string): number {
    return this.whole(field, 0, limits.tickMax);
  }

  tickOrNull(field: string): number | null {
    return this.#isNull(field) ? null : this.tick(field);
  }

  flag(field: string): boolean {
    const value = this.take(field);
    return typeof value === 'boolean' ? value : this.refuse(field, 'must be true or false');
  }

  digest(field: string): string {
    const value = this.take(field);
    return isDigest(value) ? value : this.refuse(field, 'must be 64 lower-case hexadecimal digits');
  }

  oneOf<Value>(field: string, values: readonly Value[]): Value {
    const value = this.take(field);
    return values.find((one) => one === value) ?? this.refuse(field, `must be one of ${values.join(', ')}`);
  }

  oneOfOrNull<Value>(field: string, values: readonly Value[]): Value | null {
    return this.#isNull(field) ? null : this.oneOf(field, values);
  }

  record<Value>(field: string, read: (reader: PlainReader) => Value): Value {
    return PlainReader.open(this.take(field), `${this.#path}.${field}`, this.#findings, read);
  }

  recordOrNull<Value>(field: string, read: (reader: PlainReader) => Value): Value | null {
    return this.#isNull(field) ? null : this.record(field, read);
  }

  /** A field with a reader of its own, which is told the path. */
  nested<Value>(field: string, read: (value: unknown, path: string) => Read<Value>): Value {
    const nested = read(this.take(field), `${this.#path}.${field}`);
    if (nested.ok) return nested.value;
    this.#findings.problem ??= nested.problem;
    return undefined as Value;
  }

  /** Records in a list of at most `countMax`; the bound is checked before anything else. */
  records<Value>(field: string, countMax: number, read: (reader: PlainReader) => Value): readonly Value[] {
    return this.items(field, countMax).map((item, index) =>
      PlainReader.open(item, `${this.#path}.${field}[${index}]`, this.#findings, read),
    );
  }

  items(field: string, countMax: number): readonly unknown[] {
    const items = plainItems(this.take(field), countMax);
    return items ?? this.#refuseItems(field, countMax);
  }

  #refuseItems(field: string, countMax: number): readonly unknown[] {
    this.refuse(field, `must be a plain list of at most ${countMax}`);
    return [];
  }

  /** The value of a field that must be there, not looked at. */
  take(field: string): unknown {
    this.#asked.add(field);
    if (!Object.hasOwn(this.#fields, field)) this.refuse(field, 'is missing');
    return this.#fields[field];
  }

  #isNull(field: string): boolean {
    return this.take(field) === null;
  }
}

/** The items of an array without holes, accessors or other fields, or null; none of its code runs. */
function plainItems(value: unknown, countMax: number): readonly unknown[] | null {
  try {
    if (!Array.isArray(value) || value.length > countMax) return null;
    if (Reflect.ownKeys(value).length !== value.length + 1) return null;
    const items: unknown[] = [];
    for (let index = 0; index < value.length; index++) {
      const property = Object.getOwnPropertyDescriptor(value, index);
      if (property === undefined || !('value' in property)) return null;
      items.push(property.value);
    }
    return items;
  } catch {
    return null;
  }
}
