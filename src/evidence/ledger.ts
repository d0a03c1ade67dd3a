/** A ledger, many entries as one run of bytes: what does not unpack to exactly the entries packed is refused. */
import { limits } from '../core/limits.ts';
import type { Problem } from '../core/request.ts';
import { EvidenceError } from './errors.ts';

const LENGTH_BYTES = 4;
const LENGTH_RULE = `must be 1 to ${limits.entryBytesMax} bytes long`;

/**
 * Each entry behind its length in four bytes, little-endian. Ledgers may be put behind one another. Throws
 * `ledger_out_of_bounds` for an entry that is empty or longer than `limits.entryBytesMax`.
 *
 * @example
 * ```ts
 * unpackLedger(packLedger(chain.entries)); // { ok: true, entries: chain.entries }
 * ```
 */
export function packLedger(entries: readonly Uint8Array[]): Uint8Array {
  const length = entries.reduce((sum, entry) => sum + LENGTH_BYTES + entry.byteLength, 0);
  const bytes = new Uint8Array(length);
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [index, entry] of entries.entries()) {
    if (!lengthIsAllowed(entry.byteLength)) {
      throw new EvidenceError('ledger_out_of_bounds', `ledger[${index}]`, LENGTH_RULE);
    }
    view.setUint32(at, entry.byteLength, true);
    bytes.set(entry, at + LENGTH_BYTES);
    at += LENGTH_BYTES + entry.byteLength;
  }
  return bytes;
}

/**
 * The entries of a ledger, in memory of their own; never throws. What is allocated is bounded by the bytes given, since
 * every length is checked against those left before it is used.
 */
export function unpackLedger(
  bytes: Uint8Array,
): { readonly ok: true; readonly entries: readonly Uint8Array[] } | ({ readonly ok: false } & Problem) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries: Uint8Array[] = [];
  let at = 0;
  while (at < bytes.byteLength) {
    const field = `ledger[${entries.length}]`;
    if (bytes.byteLength - at < LENGTH_BYTES) return { ok: false, field, problem: 'ends within its length' };
    const length = view.getUint32(at, true);
    at += LENGTH_BYTES;
    if (!lengthIsAllowed(length)) return { ok: false, field, problem: `${LENGTH_RULE}, and says ${length}` };
    const left = bytes.byteLength - at;
    if (length > left) return { ok: false, field, problem: `needs ${length} bytes, and ${left} are left` };
    // Not `slice`: on a Buffer that would be a view, and change with what it was read from.
    entries.push(new Uint8Array(bytes.subarray(at, at + length)));
    at += length;
  }
  return { ok: true, entries };
}

function lengthIsAllowed(length: number): boolean {
  return length >= 1 && length <= limits.entryBytesMax;
}
