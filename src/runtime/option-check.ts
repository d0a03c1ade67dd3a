/** Refuses options that do not exist: a misspelt one must not be silently without effect. */
import { InvalidInputError } from '../store/errors.ts';

/** Throws `InvalidInputError` naming the first field of `options` that is not among `known`. */
export function refuseUnknown(options: object, known: readonly string[], of: string): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new InvalidInputError(unknown, `is not an option of ${of}`);
}
