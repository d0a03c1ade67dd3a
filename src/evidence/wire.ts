/** Reads and writes the primitive fields of an entry; both ways one value has one encoding, and nothing throws. */
import { limits } from '../core/limits.ts';
import { nameProblem, type Problem } from '../core/request.ts';
import { isDigest } from './hash.ts';

/** One kind of field. After a problem the values still read are never used. */
export interface FieldCodec<Value> {
  write(writer: WireWriter, field: string, value: unknown): void;
  read(reader: WireReader, field: string): Value;
}

type Width = 1 | 2 | 4 | 8;

const U32 = 2 ** 32;
const DIGEST_BYTES = 32;

/** Collects the bytes of one entry and remembers the first field that has no encoding. */
export class WireWriter {
  problem: Problem | null = null;
  /** Where the fields being written belong to: put before their names only when one of them is refused. */
  path = '';
  #bytes = Buffer.allocUnsafe(256);
  #length = 0;

  refuse(field: string, problem: string): void {
    this.problem ??= { field: `${this.path}${field}`, problem };
  }

  whole(width: Width, value: number): void {
    const at = this.#reserve(width);
    if (width < 8) {
      this.#bytes.writeUIntLE(value, at, width);
      return;
    }
    this.#bytes.writeUInt32LE(value % U32, at);
    this.#bytes.writeUInt32LE(Math.floor(value / U32), at + 4);
  }

  text(value: string): void {
    const byteLength = Buffer.byteLength(value);
    this.whole(2, byteLength);
    const at = this.#reserve(byteLength);
    this.#bytes.write(value, at);
  }

  digest(hex: string): void {
    const at = this.#reserve(DIGEST_BYTES);
    this.#bytes.write(hex, at, 'hex');
  }

  /** The bytes written, in memory of their own. */
  finish(): Uint8Array {
    return new Uint8Array(this.#bytes.subarray(0, this.#length));
  }

  #reserve(count: number): number {
    const at = this.#length;
    this.#length += count;
    if (this.#length > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(2 * this.#length);
      this.#bytes.copy(grown);
      this.#bytes = grown;
    }
    return at;
  }
}

// A byte order mark is data like any other character; dropping it would give two encodings one meaning.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Takes fields off the front of one entry and remembers the first problem. Lengths are checked before they are used. */
export class WireReader {
  problem: Problem | null = null;
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get remaining(): number {
    return this.#bytes.length - this.#at;
  }

  refuse<Value>(field: string, problem: string): Value {
    this.problem ??= { field, problem };
    return undefined as Value;
  }

  whole(width: Width, field: string): number {
    const bytes = this.#take(width, field);
    if (bytes === null) return 0;
    return width < 8 ? bytes.readUIntLE(0, width) : bytes.readUInt32LE(0) + bytes.readUInt32LE(4) * U32;
  }

  text(byteLength: number, field: string): string | null {
    const bytes = this.#take(byteLength, field);
    try {
      return bytes === null ? null : utf8.decode(bytes);
    } catch {
      return this.refuse(field, 'must be well-formed UTF-8');
    }
  }

  digest(field: string): string {
    return this.#take(DIGEST_BYTES, field)?.toString('hex') ?? '';
  }

  #take(count: number, field: string): Buffer | null {
    if (this.problem !== null) return null;
    if (count > this.remaining) {
      this.refuse(field, `needs ${count} bytes, and ${this.remaining} are left`);
      return null;
    }
    const at = this.#at;
    this.#at += count;
    return this.#bytes.subarray(at, this.#at);
  }
}

/** A whole number from `min` to `max` in `width` bytes, little-endian. */
export function whole(width: Width, min: number, max: number): FieldCodec<number> {
  const rule = `must be a whole number from ${min} to ${max}`;
  const holds = (value: unknown): value is number =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max;
  return {
    write(writer, field, value) {
      if (holds(value)) writer.whole(width, value);
      else writer.refuse(field, rule);
    },
    read(reader, field) {
      const value = reader.whole(width, field);
      return holds(value) ? value : reader.refuse(field, rule);
    },
  };
}

/** Text of 1 to `bytesMax` UTF-8 bytes without control characters, behind its length in two bytes. */
export function name(bytesMax: number): FieldCodec<string> {
  return {
    write(writer, field, value) {
      const problem = nameProblem(value, bytesMax);
      if (problem === null) writer.text(value as string);
      else writer.refuse(field, problem);
    },
    read(reader, field) {
      const byteLength = reader.whole(2, field);
      if (byteLength > bytesMax)
        return reader.refuse(field, `must not be longer than ${bytesMax} bytes, and says ${byteLength}`);
      const value = reader.text(byteLength, field);
      const problem = nameProblem(value, bytesMax);
      return problem === null && value !== null ? value : reader.refuse(field, `${problem}`);
    },
  };
}

/** A SHA-256 digest: 32 raw bytes for 64 lower-case hexadecimal digits. */
export const digest: FieldCodec<string> = {
  write(writer, field, value) {
    if (isDigest(value)) writer.digest(value);
    else writer.refuse(field, 'must be 64 lower-case hexadecimal digits');
  },
  read: (reader, field) => reader.digest(field),
};

/** One of `values` by its place in the list, in one byte; a `null` in the list is a code that is never used. */
export function coded<Value extends string | number>(values: readonly (Value | null)[]): FieldCodec<Value> {
  const rule = `must be one of ${values.filter((value) => value !== null).join(', ')}`;
  return {
    write(writer, field, value) {
      const code = value === null ? -1 : values.indexOf(value as Value);
      if (code >= 0) writer.whole(1, code);
      else writer.refuse(field, rule);
    },
    read(reader, field) {
      const code = reader.whole(1, field);
      return values[code] ?? reader.refuse(field, `has the unknown code ${code}; it ${rule}`);
    },
  };
}

/** A byte that is 0 or 1. */
export const flag: FieldCodec<boolean> = {
  write(writer, field, value) {
    if (typeof value === 'boolean') writer.whole(1, value ? 1 : 0);
    else writer.refuse(field, 'must be true or false');
  },
  read(reader, field) {
    const byte = reader.whole(1, field);
    return byte > 1 ? reader.refuse(field, `must be 0 or 1, and is ${byte}`) : byte === 1;
  },
};

/** A byte that is always `byte` and stands for `value`; the caller has looked at both. */
export function constant<Value>(byte: number, value: Value): FieldCodec<Value> {
  return {
    write: (writer) => writer.whole(1, byte),
    read(reader, field) {
      reader.whole(1, field);
      return value;
    },
  };
}

/** A byte 0 for null, or a byte 1 and the value. */
export function optional<Value>(inner: FieldCodec<Value>): FieldCodec<Value | null> {
  return {
    write(writer, field, value) {
      flag.write(writer, field, value !== null);
      if (value !== null) inner.write(writer, field, value);
    },
    read: (reader, field) => (flag.read(reader, field) ? inner.read(reader, field) : null),
  };
}

/** Fields in the order they are listed. */
export type Layout<Shape> = { readonly [Name in keyof Shape]-?: FieldCodec<Shape[Name]> };

/** A layout as the pairs it consists of. */
export type Fields = readonly (readonly [string, FieldCodec<unknown>])[];

/** A count in two bytes and that many records; the count is bounded before the first is looked at. */
export function list<Item>(countMax: number, layout: Layout<Item>): FieldCodec<readonly Item[]> {
  const fields: Fields = Object.entries(layout);
  const rule = `must be a list of at most ${countMax}`;
  return {
    write(writer, field, value) {
      if (!Array.isArray(value) || value.length > countMax) {
        writer.refuse(field, rule);
        return;
      }
      writer.whole(2, value.length);
      for (const [index, item] of value.entries()) {
        writer.path = `${field}[${index}].`;
        writeFields(writer, fields, item);
      }
      writer.path = '';
    },
    read(reader, field) {
      const count = reader.whole(2, field);
      if (count > countMax) return reader.refuse(field, `${rule}, and says ${count}`);
      const items: Item[] = [];
      for (let index = 0; index < count && reader.problem === null; index++) {
        items.push(readFields(reader, `${field}[${index}].`, fields) as Item);
      }
      return items;
    },
  };
}

/** Writes every field of a record, and refuses a record that has any other. */
export function writeFields(writer: WireWriter, fields: Fields, value: unknown): void {
  const given = (value ?? {}) as Readonly<Record<string, unknown>>;
  for (const [field, codec] of fields) codec.write(writer, field, given[field]);
  const names = Object.keys(given);
  if (names.length === fields.length) return;
  const known = new Set(fields.map(([field]) => field));
  writer.refuse(`${names.find((field) => !known.has(field))}`, 'has no place in an entry');
}

/** Reads the fields in order into a new object. */
export function readFields(reader: WireReader, prefix: string, fields: Fields): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  for (const [field, codec] of fields) value[field] = codec.read(reader, `${prefix}${field}`);
  return value;
}

/** Milliseconds or any other count within the safe integers, in eight bytes. */
export const tick: FieldCodec<number> = whole(8, 0, limits.tickMax);
