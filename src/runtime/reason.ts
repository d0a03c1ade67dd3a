/** Makes a readable reason of whatever was thrown: it never throws itself, and it is bounded. */
import { limits, sanitizeText } from '../core/index.ts';

const CAUSES_MAX = 5;

/** A reason for people: name and message of an error with its causes, or the value that was thrown. */
export function reasonOf(thrown: unknown): string {
  try {
    return sanitizeText(describeThrown(thrown, 0), limits.reasonBytesMax);
  } catch {
    return 'a value was thrown that cannot be described';
  }
}

function describeThrown(thrown: unknown, depth: number): string {
  if (typeof thrown === 'string') return thrown === '' ? 'an empty string was thrown' : thrown;
  if (thrown === null || thrown === undefined) return `${String(thrown)} was thrown`;
  if (!(thrown instanceof Error)) return describeValue(thrown);
  const name = read(thrown, 'name');
  const message = read(thrown, 'message').slice(0, limits.reasonBytesMax);
  const text = message === '' ? name : `${name}: ${message}`;
  const cause: unknown = thrown.cause;
  if (cause === undefined || depth >= CAUSES_MAX) return text;
  return `${text}; caused by ${describeThrown(cause, depth + 1)}`;
}

function read(error: Error, field: 'name' | 'message'): string {
  try {
    const value: unknown = error[field];
    return typeof value === 'string' ? value : '';
  } catch {
    return `(its ${field} cannot be read)`;
  }
}

function describeValue(value: unknown): string {
  if (typeof value !== 'object' || value === null) return `${String(value)} was thrown`;
  try {
    return `thrown: ${JSON.stringify(value).slice(0, limits.reasonBytesMax)}`;
  } catch {
    return 'an object was thrown that cannot be shown';
  }
}
