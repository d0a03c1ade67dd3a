/** A definition: the handler a kind is for, with its revision, payload schema and policy; a bad one is refused when declared. */
import {
  canonicalJson,
  type DefinitionRecord,
  limits,
  nameProblem,
  type Recurrence,
  readRequest,
} from '../core/index.ts';
import { sha256Hex } from '../evidence/index.ts';
import { InvalidInputError } from '../store/errors.ts';
import type { CompensateContext, JobContext, ReconcileContext, RunningJob } from './context.ts';
import { type Duration, durationMs } from './duration.ts';
import type { Outcome } from './outcome.ts';
import type { InputOf, OutputOf, StandardSchema } from './standard-schema.ts';

/** What a reconciler answers; `failed` must mean: it did not happen and no longer can. */
export type ReconcileAnswer = 'succeeded' | 'failed' | 'retry' | 'unknown';

/** A definition as a program writes it. */
export interface JobDefinitionOptions<Schema extends StandardSchema, Result> {
  /** 1 to 128 bytes. */
  readonly kind: string;
  /** 1 to 255; raise it when payloads of the old form must be upgraded. */
  readonly revision: number;
  readonly payload: Schema;
  /** The delivery contract: may the handler run again after an attempt whose outcome nobody knows? */
  readonly idempotent: boolean;
  /** What an exception means when not idempotent. Default `uncertain`; the others claim to prove something. */
  readonly onThrow?: 'uncertain' | 'retryable' | 'permanent';
  readonly queue?: string;
  orderingKey?(payload: OutputOf<Schema>): string | null;
  readonly priority?: number;
  readonly maxAttempts?: number;
  readonly backoff?: { readonly base?: Duration; readonly max?: Duration };
  /** How long one attempt may take. Default: as long as its lease is renewed. */
  readonly timeout?: Duration;
  /** A deadline for each job, from its admission. */
  readonly deadlineAfter?: Duration;
  readonly recurrence?: Recurrence;
  readonly requiresEffect?: string;
  readonly reconcileAfter?: Duration;
  readonly acceptLateReports?: boolean;
  /** Says what a payload of an older revision means in the next one, by the older revision. */
  readonly upgrade?: Readonly<Record<number, (payload: unknown) => unknown>>;
  /** Overrides the digest of the schema in the definition ledger. */
  readonly schemaVersion?: string;
  run(job: RunningJob<OutputOf<Schema>>, context: JobContext): Promise<Result | Outcome> | Result | Outcome;
  reconcile?(
    job: RunningJob<OutputOf<Schema>>,
    context: ReconcileContext,
  ): Promise<ReconcileAnswer> | ReconcileAnswer;
  /** Undoes what attempts did. It may name an outcome; whatever else it returns means that it is done. */
  compensate?(job: RunningJob<OutputOf<Schema>>, context: CompensateContext): unknown;
}

/** A definition that was read: complete and bounded. */
export interface JobDefinition<Schema extends StandardSchema = StandardSchema, Result = unknown> {
  readonly kind: string;
  readonly revision: number;
  readonly idempotent: boolean;
  readonly options: JobDefinitionOptions<Schema, Result>;
  readonly onThrow: 'uncertain' | 'retryable' | 'permanent';
  readonly timeoutMs: number | null;
  readonly deadlineAfterMs: number | null;
  readonly backoffBaseMs: number;
  readonly backoffMaxMs: number;
  readonly reconcileAfterMs: number;
}

/** Any definition, for lists of them. */
export type AnyDefinition = JobDefinition<StandardSchema, unknown>;

const OPTIONS: ReadonlySet<string> = new Set<keyof JobDefinitionOptions<StandardSchema, unknown>>([
  'kind',
  'revision',
  'payload',
  'idempotent',
  'onThrow',
  'queue',
  'orderingKey',
  'priority',
  'maxAttempts',
  'backoff',
  'timeout',
  'deadlineAfter',
  'recurrence',
  'requiresEffect',
  'reconcileAfter',
  'acceptLateReports',
  'upgrade',
  'schemaVersion',
  'run',
  'reconcile',
  'compensate',
]);

/**
 * Declares a job. Payload and result types follow from the schema and the handler. Throws `InvalidInputError` naming the
 * first option that cannot be taken; an option that does not exist is one.
 *
 * @example
 * ```ts
 * const greet = defineJob({ kind: 'greet', revision: 1, payload: schema, idempotent: true, run: async (job) => job.payload });
 * ```
 */
export function defineJob<Schema extends StandardSchema, Result>(
  options: JobDefinitionOptions<Schema, Result>,
): JobDefinition<Schema, Result> {
  const unknown = Object.keys(options).find((name) => !OPTIONS.has(name));
  if (unknown !== undefined) throw new InvalidInputError(unknown, 'is not an option of defineJob');
  const problem = nameProblem(options.kind, limits.kindBytesMax);
  if (problem !== null) throw new InvalidInputError('kind', problem);
  whole(options.revision, 'revision', limits.revisionMin, limits.revisionMax);
  if (typeof options.idempotent !== 'boolean') {
    throw new InvalidInputError('idempotent', 'must be true or false: the delivery contract is declared');
  }
  if (typeof options.payload?.['~standard']?.validate !== 'function') {
    throw new InvalidInputError('payload', 'must be a schema that follows the Standard Schema interface');
  }
  for (const hook of ['run', 'reconcile', 'compensate', 'orderingKey'] as const) {
    const missing = options[hook] === undefined && hook !== 'run';
    if (!missing && typeof options[hook] !== 'function')
      throw new InvalidInputError(hook, 'must be a function');
  }
  const { onThrow = 'uncertain' } = options;
  if (!['uncertain', 'retryable', 'permanent'].includes(onThrow)) {
    throw new InvalidInputError('onThrow', 'must be uncertain, retryable or permanent');
  }
  if (options.maxAttempts !== undefined) {
    whole(options.maxAttempts, 'maxAttempts', limits.maxAttemptsMin, limits.maxAttemptsMax);
  }
  if (options.priority !== undefined)
    whole(options.priority, 'priority', limits.priorityMin, limits.priorityMax);
  checkUpgrades(options);
  if (options.acceptLateReports !== undefined && typeof options.acceptLateReports !== 'boolean') {
    throw new InvalidInputError('acceptLateReports', 'must be true or false');
  }
  checkAdmissible(options);
  const optional = (value: Duration | undefined, field: string, maxMs: number): number | null =>
    value === undefined ? null : durationMs(value, field, 1, maxMs);
  const { base = limits.backoffBaseMsDefault, max = limits.backoffMaxMsDefault } = options.backoff ?? {};
  const backoffMaxMs = durationMs(max, 'backoff.max', 0, limits.backoffMsMax);
  return {
    kind: options.kind,
    revision: options.revision,
    idempotent: options.idempotent,
    options,
    onThrow,
    timeoutMs: optional(options.timeout, 'timeout', limits.backoffMsMax),
    deadlineAfterMs: optional(options.deadlineAfter, 'deadlineAfter', limits.recurrenceIntervalMsMax),
    backoffBaseMs: durationMs(base, 'backoff.base', 0, backoffMaxMs),
    backoffMaxMs,
    reconcileAfterMs: durationMs(
      options.reconcileAfter ?? limits.leaseMsDefault,
      'reconcileAfter',
      0,
      limits.reconcileAfterMsMax,
    ),
  };
}

/** What every job of the kind is admitted with is read as admission reads it, so that no enqueue is the first to know. */
function checkAdmissible(options: JobDefinitionOptions<StandardSchema, unknown>): void {
  const { kind, revision, idempotent, queue = null, requiresEffect = null, recurrence = null } = options;
  const read = readRequest({ kind, revision, idempotent, payload: null, queue, requiresEffect, recurrence });
  if (!read.ok) throw new InvalidInputError(read.problem.field, read.problem.problem);
  if (recurrence !== null && options.orderingKey !== undefined) {
    throw new InvalidInputError(
      'orderingKey',
      'must not be given with recurrence: it would hold its lane for ever',
    );
  }
  if (options.schemaVersion !== undefined) {
    const problem = nameProblem(options.schemaVersion, limits.kindBytesMax);
    if (problem !== null) throw new InvalidInputError('schemaVersion', problem);
  }
}

function whole(value: unknown, field: string, min: number, max: number): void {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return;
  throw new InvalidInputError(field, `must be a whole number from ${min} to ${max}`);
}

function checkUpgrades(options: JobDefinitionOptions<StandardSchema, unknown>): void {
  for (const [from, upgrade] of Object.entries(options.upgrade ?? {})) {
    const field = `upgrade.${from}`;
    if (typeof upgrade !== 'function') throw new InvalidInputError(field, 'must be a function');
    whole(Number(from), field, limits.revisionMin, options.revision - 1);
  }
}

/** Parts of a JSON Schema that say nothing of what is accepted, or differ between releases of one library. */
const SILENT: ReadonlySet<string> = new Set([
  '$schema',
  'title',
  'description',
  'examples',
  '$comment',
  'deprecated',
  'propertyNames',
]);
const NORMALISATION = 'json-schema-1';

/** What the definition ledger keeps of a definition. */
export function recordOf(definition: AnyDefinition): DefinitionRecord {
  const { kind, revision } = definition;
  const standard = definition.options.payload['~standard'];
  const { schemaVersion } = definition.options;
  if (schemaVersion !== undefined) {
    return { kind, revision, schemaDigest: sha256Hex(schemaVersion), normalisation: 'schema-version' };
  }
  return {
    kind,
    revision,
    schemaDigest: schemaDigest(standard),
    normalisation: `${NORMALISATION}:${standard.vendor}`,
  };
}

function schemaDigest(standard: StandardSchema['~standard']): string | null {
  try {
    const schema = standard.jsonSchema?.input({ target: 'draft-2020-12' });
    if (schema === undefined) return null;
    const canonical = canonicalJson(normalised(schema), { maxDepth: 64, maxBytes: limits.payloadBytesMax });
    return canonical.ok ? sha256Hex(canonical.text) : null;
  } catch {
    // A schema that cannot say itself as JSON Schema is not comparable; that is a warning and no failure.
    return null;
  }
}

function normalised(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(normalised);
  if (typeof schema !== 'object' || schema === null) return schema;
  const kept = Object.entries(schema).filter(
    ([name]) => !SILENT.has(name) && !(name === 'pattern' && 'format' in schema),
  );
  return Object.fromEntries(kept.map(([name, value]) => [name, normalised(value)]));
}

/** The payload type a definition takes. */
export type PayloadOf<Definition> =
  Definition extends JobDefinition<infer Schema, unknown> ? InputOf<Schema> : never;
