/** Lengths of time as people write them; anything that is not plainly one is refused by the name of its option. */
import { InvalidInputError } from '../store/errors.ts';

/** Milliseconds, or a number with its unit: `'250ms'`, `'30s'`, `'5m'`, `'2h'`, `'7d'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * The milliseconds of a duration, whole and from `minMs` to `maxMs`. Throws `InvalidInputError` naming `field`.
 *
 * @example
 * ```ts
 * durationMs('5m', 'backoff.max', 0, 86_400_000); // 300000
 * ```
 */
export function durationMs(value: unknown, field: string, minMs: number, maxMs: number): number {
  const match = typeof value === 'string' ? /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value) : null;
  const ms = match === null ? value : Number(match[1]) * (UNIT_MS[match[2] ?? ''] ?? Number.NaN);
  if (typeof ms === 'number' && Number.isSafeInteger(ms) && ms >= minMs && ms <= maxMs) return ms;
  const rule = `must be whole milliseconds or text such as '30s', from ${minMs} to ${maxMs} ms`;
  throw new InvalidInputError(field, rule);
}
