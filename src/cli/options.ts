/** Reads options: numbers, lengths of time, moments and JSON; what cannot be read exactly is refused, never rounded. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { limits, STATE_NAMES, STATE_TABLE, type State } from '../core/index.ts';
import type { By } from '../store/store.ts';
import { type CommonOptions, type Run, unlessEnded } from './context.ts';
import { usage } from './errors.ts';

/** Reads a whole number within bounds. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
    if (Number.isSafeInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${min} to ${max}.`);
  };
}

/** Reads an id given as an argument. */
export function parseId(text: string | undefined): number {
  const value = text !== undefined && /^\d{1,16}$/.test(text) ? Number(text) : 0;
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw usage(`${text ?? 'nothing'} is no job id`, 'A job id is a whole number above 0.');
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Reads a length of time such as `90s`, `15m`, `2h`, `7d` or `250ms`. */
export function duration(text: string): number {
  const match = /^(\d{1,15})(ms|s|m|h|d)$/.exec(text);
  const value = Number(match?.[1]) * (UNIT_MS[match?.[2] ?? ''] ?? Number.NaN);
  if (Number.isSafeInteger(value)) return value;
  throw new InvalidArgumentError('It must be a length of time such as 250ms, 90s, 15m, 2h or 7d.');
}

/** As `duration`, and `never`. A parsed null would be taken for an option without its value. */
export function durationOrNever(text: string): number | 'never' {
  return text === 'never' ? text : duration(text);
}

/** Reads a moment: `+2h` from now, a date and time with its zone, or milliseconds since 1970. */
export function moment(text: string, now: number, option: string): number {
  if (text.startsWith('+')) {
    try {
      return now + duration(text.slice(1));
    } catch {
      throw usage(`${option} ${text} is no moment`, MOMENT);
    }
  }
  if (/^\d{1,16}$/.test(text)) return Number(text);
  const zoned = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d{1,3})?)?(Z|[+-]\d{2}:\d{2})$/.test(text);
  const tick = zoned ? Date.parse(text) : Number.NaN;
  if (Number.isSafeInteger(tick) && tick >= 0) return tick;
  throw usage(`${option} ${text} is no moment`, MOMENT);
}

const MOMENT = 'Give +2h, or 2030-01-31T12:00:00Z with its zone, or milliseconds since 1970.';

/** A kind of option that may be given several times. */
export function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

/** State names that a job can be found in. */
const FOUND_STATES = STATE_NAMES.filter((name) => name !== 'RETRYABLE_FAILURE');

/** Reads a state by its name, in any case, several separated by commas. */
export function stateNames(text: string, previous: readonly State[] = []): readonly State[] {
  const states = text.split(',').map((part) => {
    const row = STATE_TABLE.find(({ name }) => name === part.trim().toUpperCase());
    if (row !== undefined) return row.code;
    throw new InvalidArgumentError(`A state is one of ${FOUND_STATES.join(', ')}.`);
  });
  return [...previous, ...states];
}

/** Options of whoever changes something. */
export interface ByOptions extends CommonOptions {
  readonly actor?: string;
  readonly reason?: string;
}

/** Adds who and why. A command that decides about somebody's work requires the why. */
export function addBy(command: Command, reason: 'required' | 'optional'): void {
  command.option('--actor <name>', 'who does it (default: $CUSTODY_ACTOR, else user@host)');
  const why = new Option('--reason <text>', 'why, for the record');
  command.addOption(reason === 'required' ? why.makeOptionMandatory() : why);
}

export function byOf({ options, context }: Run<ByOptions>): By & { readonly reason: string | null } {
  const actor = options.actor ?? context.env['CUSTODY_ACTOR'] ?? context.user;
  return { actor: actor === '' ? context.user : actor, reason: options.reason ?? null };
}

/** Reads JSON and refuses what parsing would change: a whole number too large to be kept exactly. */
export function parseJson(text: string, what: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const problem = error instanceof Error ? error.message : '';
    throw usage(`${what} is no JSON: ${problem}`, 'Quote it for the shell, or give - and pipe it in.');
  }
  const inexact = inexactNumber(text);
  if (inexact === null) return value;
  throw usage(`${what} holds ${inexact}, which no JavaScript number keeps exactly`, 'Send it as text.');
}

const STRINGS = /"(?:[^"\\]|\\.)*"/g;
const WHOLE_NUMBERS = /(?<![\d.eE+-])-?\d+(?![\d.eE])/g;

function inexactNumber(text: string): string | null {
  for (const [digits] of text.replace(STRINGS, '""').matchAll(WHOLE_NUMBERS)) {
    if (digits.length >= 16 && !Number.isSafeInteger(Number(digits))) return digits.slice(0, 40);
  }
  return null;
}

/** Reads all of the standard input as UTF-8 text, up to a bound. */
export async function readStdin({ context }: Run, bytesMax: number): Promise<string> {
  return decodeUtf8(await unlessEnded(context, collectBytes(context.stdin, bytesMax)), 'the input');
}

async function collectBytes(stdin: Run['context']['stdin'], bytesMax: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of stdin) {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    length += bytes.length;
    if (length > bytesMax) throw usage(`the input is longer than ${bytesMax} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

/** Text from bytes that must be UTF-8. */
export function decodeUtf8(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw usage(`${what} is not UTF-8 text`);
  }
}

/** A bound for pages of jobs. */
export const pageLimit: (text: string) => number = wholeNumber(1, limits.findPageMax);
