/** SHA-256, the one hash of all evidence: equal digests mean equal bytes unless SHA-256 itself is broken. */
import { hash } from 'node:crypto';

const DIGEST = /^[0-9a-f]{64}$/;

/**
 * SHA-256 as 64 lower-case hexadecimal digits; text counts as its UTF-8 bytes.
 *
 * @example
 * ```ts
 * sha256Hex('abc'); // 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
 * ```
 */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data, 'hex');
}

/** Whether a value is a digest as evidence writes it; upper case is another text and not accepted. */
export function isDigest(value: unknown): value is string {
  return typeof value === 'string' && DIGEST.test(value);
}
