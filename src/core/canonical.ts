/** JSON that survives exactly: a value that would be lost or changed on the way is refused with its place, whatever it is made of. */
import { isTick } from './ticks.ts';

/** Bounds of a JSON text; anything but a whole number from 0 to 2^53-1 counts as 0. */
export interface JsonLimits {
  /** Arrays and objects within one another, the outermost included; 0 admits only a bare scalar. */
  readonly maxDepth: number;
  /** UTF-8 bytes of the canonical text. */
  readonly maxBytes: number;
}

/** A canonical text, or where the value is that has none and what is wrong with it, worded to follow a field's name. */
export type CanonicalJson =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly path: string; readonly problem: string };

const PATH_BYTES_MAX = 1024;
const PATH_NAME_MAX = 128;
const ELLIPSIS = '…';
/** ASCII that needs no escape: most keys and many values, so they are worth a way past the three passes of the others. */
const BARE = /^[ !#-[\]-~]*$/;
/** Lone surrogates, and control characters other than line feed and tab. */
const UNSHOWABLE = /(?![\n\t])[\p{Control}\p{Surrogate}]/gu;

/**
 * The canonical JSON text of a value (RFC 8785), or what stands in its way and where, as in `$.items[3].when`. Equal
 * values have equal texts, whatever the order of their keys. Never throws, runs no accessor and no `toJSON`, and stops as
 * soon as a bound is passed.
 *
 * @example
 * ```ts
 * canonicalJson({ b: 1, a: [-0] }, { maxDepth: 8, maxBytes: 100 }); // { ok: true, text: '{"a":[0],"b":1}' }
 * canonicalJson({ when: new Map() }, { maxDepth: 8, maxBytes: 100 });
 * // { ok: false, path: '$.when', problem: 'must not contain an instance of a class' }
 * ```
 */
export function canonicalJson(value: unknown, limits: JsonLimits): CanonicalJson {
  const writer = new CanonicalWriter(limits);
  const problem = writer.write(value);
  return problem === null ? { ok: true, text: writer.text } : { ok: false, path: writer.path(), problem };
}

/** An array or object being written; its keys are looked at one by one. */
interface Frame {
  readonly container: object;
  /** Sorted by UTF-16 code units; null for an array. */
  readonly names: readonly string[] | null;
  readonly size: number;
  /** Position of the item being written, -1 before the first. */
  at: number;
}

/** Writes with a stack of its own: how deep a value may nest is the caller's bound, not that of the engine's stack. */
class CanonicalWriter {
  text = '';
  #bytes = 0;
  #blamed = '';
  readonly #maxDepth: number;
  readonly #maxBytes: number;
  readonly #stack: Frame[] = [];
  readonly #ancestors = new Set<object>();

  constructor(limits: JsonLimits) {
    this.#maxDepth = isTick(limits.maxDepth) ? limits.maxDepth : 0;
    this.#maxBytes = isTick(limits.maxBytes) ? limits.maxBytes : 0;
  }

  /** Writes the whole value and returns what is wrong with it, or null. */
  write(root: unknown): string | null {
    try {
      let problem = this.#value(root);
      for (let frame = this.#stack.at(-1); frame && problem === null; frame = this.#stack.at(-1)) {
        problem = frame.at + 1 < frame.size ? this.#item(frame) : this.#leave(frame);
      }
      return problem;
    } catch {
      // Only the traps of a proxy run foreign code here.
      return 'must not contain what cannot be read';
    }
  }

  /** Where the value is that was being written when a problem came up. */
  path(): string {
    const places = this.#stack.map((frame) => pathPart(keyOf(frame)));
    return sanitizeText(`$${places.join('')}${this.#blamed}`, PATH_BYTES_MAX);
  }

  #value(value: unknown): string | null {
    switch (typeof value) {
      case 'string':
        return this.#quoted('', value, '');
      case 'number':
        if (!Number.isFinite(value)) return 'must not contain a number that is not finite';
        return this.#put(String(value));
      case 'boolean':
        return this.#put(String(value));
      case 'object':
        return value === null ? this.#put('null') : this.#enter(value);
      case 'undefined':
        return 'must not contain undefined';
      default:
        return `must not contain a ${typeof value}`;
    }
  }

  #enter(container: object): string | null {
    if (this.#ancestors.has(container)) return 'must not contain a cycle';
    if (this.#stack.length >= this.#maxDepth) return `must not nest deeper than ${this.#maxDepth}`;
    const prototype: unknown = Object.getPrototypeOf(container);
    const isArray = Array.isArray(container);
    const isPlain = isArray
      ? prototype === Array.prototype
      : prototype === Object.prototype || prototype === null;
    if (!isPlain) return 'must not contain an instance of a class';
    return isArray ? this.#enterArray(container) : this.#enterObject(container);
  }

  #enterArray(container: readonly unknown[]): string | null {
    const size = container.length;
    // One byte for each item and each comma is sure: an array too long is refused before its keys are listed.
    if (2 * size - 1 > this.#room()) return this.#tooLarge();
    const names = Reflect.ownKeys(container);
    // An array's own keys are its items, `length`, and then whatever else was put on it.
    if (names.length > size + 1)
      return this.#blame(names.at(-1), 'must not contain an array with properties');
    return this.#open({ container, names: null, size, at: -1 });
  }

  #enterObject(container: object): string | null {
    const keys = Reflect.ownKeys(container);
    const names = keys.filter((key) => typeof key === 'string');
    if (names.length < keys.length) return this.#blame(keys.at(-1), 'must not contain a symbol');
    // `"":0` and a comma are the least a member takes: an object too large is refused before it is sorted.
    if (5 * names.length - 1 > this.#room()) return this.#tooLarge();
    return this.#open({ container, names: names.sort(), size: names.length, at: -1 });
  }

  #open(frame: Frame): string | null {
    const problem = this.#put(frame.names === null ? '[' : '{');
    if (problem !== null) return problem;
    this.#stack.push(frame);
    this.#ancestors.add(frame.container);
    return null;
  }

  #leave(frame: Frame): string | null {
    this.#stack.pop();
    this.#ancestors.delete(frame.container);
    return this.#put(frame.names === null ? ']' : '}');
  }

  #item(frame: Frame): string | null {
    frame.at += 1;
    const key = keyOf(frame);
    const comma = frame.at === 0 ? '' : ',';
    const problem = typeof key === 'string' ? this.#quoted(comma, key, ':') : this.#put(comma);
    if (problem !== null) return problem;
    const property = Object.getOwnPropertyDescriptor(frame.container, key);
    if (property === undefined) return 'must not contain a hole';
    if (!Object.hasOwn(property, 'value')) return 'must not contain an accessor';
    if (property.enumerable !== true) return 'must not contain a property that is not enumerable';
    return this.#value(property.value);
  }

  #quoted(before: string, text: string, after: string): string | null {
    // A code unit takes at least a byte: a text too long is refused without being looked at.
    if (text.length > this.#room()) return this.#tooLarge();
    if (BARE.test(text)) return this.#put(`${before}"${text}"${after}`);
    if (!isWellFormedText(text)) return 'must not contain a lone surrogate';
    const quoted = JSON.stringify(text);
    return this.#put(`${before}${quoted}${after}`, before.length + utf8Length(quoted) + after.length);
  }

  /** Unless told otherwise, a character takes one byte. */
  #put(text: string, bytes: number = text.length): string | null {
    this.#bytes += bytes;
    if (this.#room() < 0) return this.#tooLarge();
    this.text += text;
    return null;
  }

  #room(): number {
    return this.#maxBytes - this.#bytes;
  }

  #tooLarge(): string {
    return `must not be larger than ${this.#maxBytes} bytes as JSON`;
  }

  #blame(key: string | symbol | undefined, problem: string): string {
    this.#blamed = pathPart(String(key));
    return problem;
  }
}

function keyOf(frame: Frame): string | number {
  return frame.names?.[frame.at] ?? frame.at;
}

function pathPart(key: string | number): string {
  if (typeof key === 'number') return `[${key}]`;
  if (key.length <= PATH_NAME_MAX && /^[A-Za-z_$][\w$]*$/.test(key)) return `.${key}`;
  return `[${JSON.stringify(key.slice(0, PATH_NAME_MAX))}]`;
}

/**
 * A copy that shares nothing with a JSON value, for a value `canonicalJson` accepts: a cycle overflows the stack. An own
 * key named `__proto__` stays data, and what was shared within the value is apart in the copy.
 *
 * @example
 * ```ts
 * const copy = deepCopyJson(state); // edit it freely; `state` stays as it is
 * ```
 */
export function deepCopyJson<Value>(value: Value): Value;
export function deepCopyJson(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => deepCopyJson(item));
  // Assigning to `__proto__` would set the prototype; `fromEntries` defines every key as an own property.
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, deepCopyJson<unknown>(item)]));
}

/**
 * Bytes of a text in UTF-8, a lone surrogate counted as the U+FFFD an encoder puts in its place.
 *
 * @example
 * ```ts
 * utf8Length('a€😀'); // 8
 * ```
 */
export function utf8Length(text: string): number {
  let bytes = 0;
  let at = 0;
  for (let point = text.codePointAt(at); point !== undefined; point = text.codePointAt(at)) {
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    at += point < 0x10000 ? 1 : 2;
  }
  return bytes;
}

/**
 * Whether a text has no lone surrogate, and so comes back equal from UTF-8.
 *
 * @example
 * ```ts
 * isWellFormedText('😀'); // true
 * isWellFormedText('\ud83d'); // false
 * ```
 */
export function isWellFormedText(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

/**
 * A text that may be shown and stored: lone surrogates and control characters other than line feed and tab become U+FFFD,
 * and what is longer than `maxBytes` UTF-8 bytes is cut between code points and ends in `…`. Where not
 * even that mark fits (below 3 bytes, or a bound out of domain), a text too long becomes empty.
 *
 * @example
 * ```ts
 * sanitizeText('no\u0000pe', 100); // 'no\ufffdpe'
 * sanitizeText('abcdefgh', 6); // 'abc…'
 * ```
 */
export function sanitizeText(text: string, maxBytes: number): string {
  const bound = isTick(maxBytes) ? maxBytes : 0;
  // A code unit takes at least a byte, so nothing past the bound can be kept; what is cut there is never kept either.
  const clean = text.slice(0, bound).replace(UNSHOWABLE, '\ufffd');
  if (text.length <= bound && utf8Length(clean) <= bound) return clean;
  let room = bound - utf8Length(ELLIPSIS);
  if (room < 0) return '';
  let kept = '';
  for (const character of clean) {
    room -= utf8Length(character);
    if (room < 0) break;
    kept += character;
  }
  return `${kept}${ELLIPSIS}`;
}
