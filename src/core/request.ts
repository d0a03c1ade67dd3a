/** Reads what a caller asks for into a complete, bounded form, or names the field and the bound that it breaks. */
import { canonicalJson, isWellFormedText, utf8Length } from './canonical.ts';
import type { Recurrence } from './job.ts';
import { limits } from './limits.ts';
import { isTick } from './ticks.ts';

/** A field that is not as it must be, and what it must be. */
export interface Problem {
  readonly field: string;
  readonly problem: string;
}

/** What a caller may ask for. Ticks and lengths are whole milliseconds; absent and null options take the default. */
export interface JobRequest {
  readonly kind: string;
  /** Revision of the definition, 1 to 255. */
  readonly revision: number;
  /** Any value that survives JSON exactly. */
  readonly payload: unknown;
  /** The delivery contract: whether the handler may run again after an attempt whose outcome is not known. */
  readonly idempotent: boolean;
  /** Default `default`. */
  readonly queue?: string | null;
  /** Jobs of one queue with the same key start strictly in admission order. */
  readonly orderingKey?: string | null;
  readonly idempotencyKey?: string | null;
  /** Makes repeating this very request recognisable. */
  readonly requestId?: string | null;
  /** -1000 to 1000, higher first, default 0. */
  readonly priority?: number | null;
  /** Start at this tick, or after `delayMs`; not both. Default now. */
  readonly startAt?: number | null;
  readonly delayMs?: number | null;
  /** No attempt starts at or after this tick. */
  readonly deadline?: number | null;
  /** 1 to 10,000, default 5. */
  readonly maxAttempts?: number | null;
  readonly backoffBaseMs?: number | null;
  readonly backoffMaxMs?: number | null;
  readonly reconcileAfterMs?: number | null;
  readonly acceptLateReports?: boolean | null;
  readonly reconciles?: boolean | null;
  readonly compensates?: boolean | null;
  readonly requiresEffect?: string | null;
  readonly recurrence?: Recurrence | null;
}

/** A request that was read: complete, within every bound, its payload as canonical JSON text. */
export interface Asked {
  readonly kind: string;
  readonly revision: number;
  readonly payload: string;
  readonly idempotent: boolean;
  readonly queue: string;
  readonly orderingKey: string | null;
  readonly idempotencyKey: string | null;
  readonly requestId: string | null;
  readonly priority: number;
  readonly startAt: number | null;
  readonly delayMs: number;
  readonly deadline: number | null;
  readonly maxAttempts: number;
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
  readonly reconcileAfterMs: number;
  readonly acceptLateReports: boolean;
  readonly reconciles: boolean;
  readonly compensates: boolean;
  readonly requiresEffect: string | null;
  readonly recurrence: Recurrence | null;
}

type Fields = Readonly<Record<string, unknown>>;

const REQUEST_FIELDS: ReadonlySet<string> = new Set<keyof JobRequest>([
  'kind',
  'revision',
  'payload',
  'idempotent',
  'queue',
  'orderingKey',
  'idempotencyKey',
  'requestId',
  'priority',
  'startAt',
  'delayMs',
  'deadline',
  'maxAttempts',
  'backoffBaseMs',
  'backoffMaxMs',
  'reconcileAfterMs',
  'acceptLateReports',
  'reconciles',
  'compensates',
  'requiresEffect',
  'recurrence',
]);

/** Keys of internal jobs begin so; nobody else's may. */
export const INTERNAL_KEY_PREFIX = 'custody:';

/**
 * Reads a request, or names the first field that cannot be taken. Nothing is clipped, rounded or guessed, and a field
 * that does not exist is refused: a misspelt option must not be silently without effect.
 *
 * @example
 * ```ts
 * readRequest({ kind: 'mail', revision: 1, payload: {}, idempotent: true, priority: 2000 });
 * // { ok: false, problem: { field: 'priority', problem: 'must be a whole number from -1000 to 1000' } }
 * ```
 */
export function readRequest(
  request: unknown,
): { readonly ok: true; readonly asked: Asked } | { readonly ok: false; readonly problem: Problem } {
  const fields = plainFields(request);
  if (fields === null) return { ok: false, problem: { field: 'job', problem: 'must be a plain object' } };
  const reader = new FieldReader(fields);
  reader.refuseUnknown(REQUEST_FIELDS);
  const asked: Asked = {
    kind: reader.name('kind', limits.kindBytesMax),
    revision: reader.whole('revision', limits.revisionMin, limits.revisionMax),
    payload: reader.json('payload', limits.payloadDepthMax, limits.payloadBytesMax),
    idempotent: reader.flag('idempotent'),
    queue: reader.name('queue', limits.queueBytesMax, 'default'),
    orderingKey: reader.optionalName('orderingKey', limits.orderingKeyBytesMax),
    idempotencyKey: reader.optionalName('idempotencyKey', limits.idempotencyKeyBytesMax),
    requestId: reader.optionalName('requestId', limits.requestIdBytesMax),
    priority: reader.whole('priority', limits.priorityMin, limits.priorityMax, 0),
    startAt: reader.optionalTick('startAt'),
    delayMs: reader.whole('delayMs', 0, limits.tickMax, 0),
    deadline: reader.optionalTick('deadline'),
    maxAttempts: reader.whole(
      'maxAttempts',
      limits.maxAttemptsMin,
      limits.maxAttemptsMax,
      limits.maxAttemptsDefault,
    ),
    backoffBaseMs: reader.whole('backoffBaseMs', 0, limits.backoffMsMax, limits.backoffBaseMsDefault),
    backoffMaxMs: reader.whole('backoffMaxMs', 0, limits.backoffMsMax, limits.backoffMaxMsDefault),
    reconcileAfterMs: reader.whole('reconcileAfterMs', 0, limits.reconcileAfterMsMax, limits.leaseMsDefault),
    acceptLateReports: reader.flag('acceptLateReports', true),
    reconciles: reader.flag('reconciles', false),
    compensates: reader.flag('compensates', false),
    requiresEffect: reader.optionalName('requiresEffect', limits.effectKeyBytesMax),
    recurrence: reader.recurrence(),
  };
  const problem = reader.problem ?? relationProblem(asked);
  return problem === null ? { ok: true, asked } : { ok: false, problem };
}

function relationProblem(asked: Asked): Problem | null {
  if (asked.startAt !== null && asked.delayMs > 0) {
    return { field: 'delayMs', problem: 'must not be given together with startAt' };
  }
  if (asked.backoffBaseMs > asked.backoffMaxMs) {
    return {
      field: 'backoffBaseMs',
      problem: `must not be above backoffMaxMs, which is ${asked.backoffMaxMs}`,
    };
  }
  if (asked.idempotencyKey?.startsWith(INTERNAL_KEY_PREFIX) === true) {
    return {
      field: 'idempotencyKey',
      problem: `must not start with ${INTERNAL_KEY_PREFIX}, which is reserved`,
    };
  }
  if (asked.recurrence !== null && asked.orderingKey !== null) {
    return {
      field: 'orderingKey',
      problem: 'must not be given with recurrence: it would hold its lane for ever',
    };
  }
  return null;
}

/** The own fields of a plain object, null for anything else; accessors are refused, since reading one runs code. */
export function plainFields(value: unknown): Fields | null {
  if (typeof value !== 'object' || value === null) return null;
  try {
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype !== Object.prototype && prototype !== null) return null;
    const fields = new Map<string, unknown>();
    for (const key of Reflect.ownKeys(value)) {
      const property = Object.getOwnPropertyDescriptor(value, key);
      if (typeof key !== 'string' || property === undefined || !('value' in property)) return null;
      fields.set(key, property.value);
    }
    return Object.fromEntries(fields);
  } catch {
    return null;
  }
}

/** What is wrong with a name of at most `bytesMax` UTF-8 bytes, or null: names are data, yet they end up on terminals. */
export function nameProblem(value: unknown, bytesMax: number): string | null {
  const rule = `must be text of 1 to ${bytesMax} UTF-8 bytes without control characters or lone surrogates`;
  if (typeof value !== 'string' || value.length === 0 || value.length > bytesMax) return rule;
  if (/\p{Cc}/u.test(value) || !isWellFormedText(value)) return rule;
  return utf8Length(value) > bytesMax ? rule : null;
}

/** Reads fields one by one and remembers the first problem; what it returns after a problem is never used. */
class FieldReader {
  problem: Problem | null = null;
  readonly #fields: Fields;

  constructor(fields: Fields) {
    this.#fields = fields;
  }

  refuseUnknown(known: ReadonlySet<string>, prefix = ''): void {
    const unknown = Object.keys(this.#fields).find((name) => !known.has(name));
    if (unknown !== undefined) this.#refuse(`${prefix}${unknown}`, 'is not an option');
  }

  name(field: string, bytesMax: number, fallback?: string): string {
    const value = this.#fields[field] ?? fallback;
    const problem = nameProblem(value, bytesMax);
    if (problem === null && typeof value === 'string') return value;
    return this.#refuse(field, `${problem}`, '');
  }

  optionalName(field: string, bytesMax: number): string | null {
    return (this.#fields[field] ?? null) === null ? null : this.name(field, bytesMax);
  }

  whole(field: string, min: number, max: number, fallback?: number, prefix = ''): number {
    const value = this.#fields[field] ?? fallback;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max)
      return value;
    return this.#refuse(`${prefix}${field}`, `must be a whole number from ${min} to ${max}`, min);
  }

  optionalTick(field: string): number | null {
    const value = this.#fields[field] ?? null;
    if (value === null || isTick(value)) return value;
    return this.#refuse(field, `must be a whole number of milliseconds from 0 to ${limits.tickMax}`, null);
  }

  flag(field: string, fallback?: boolean): boolean {
    const value = this.#fields[field] ?? fallback;
    return typeof value === 'boolean' ? value : this.#refuse(field, 'must be true or false', false);
  }

  json(field: string, maxDepth: number, maxBytes: number): string {
    const canonical = canonicalJson(this.#fields[field], { maxDepth, maxBytes });
    if (canonical.ok) return canonical.text;
    return this.#refuse(field, `${canonical.problem} at ${canonical.path}`, '');
  }

  recurrence(): Recurrence | null {
    const value = this.#fields['recurrence'] ?? null;
    if (value === null) return null;
    const fields = plainFields(value);
    if (fields === null) return this.#refuse('recurrence', 'must be a plain object', null);
    const reader = new FieldReader(fields);
    const prefix = 'recurrence.';
    reader.refuseUnknown(new Set(['intervalMs', 'maxOccurrences', 'maxCatchUp']), prefix);
    const recurrence: Recurrence = {
      intervalMs: reader.whole('intervalMs', 1, limits.recurrenceIntervalMsMax, undefined, prefix),
      maxOccurrences: reader.whole('maxOccurrences', 1, limits.maxOccurrencesMax, undefined, prefix),
      maxCatchUp: reader.whole('maxCatchUp', 0, limits.maxCatchUpMax, undefined, prefix),
    };
    this.problem ??= reader.problem;
    return recurrence;
  }

  #refuse<Value>(field: string, problem: string, unused?: Value): Value {
    this.problem ??= { field, problem };
    return unused as Value;
  }
}
