/** Reads what callers give a store's verbs, the same for every backend: bad input throws before anything is changed. */
import {
  type Asked,
  canonicalJson,
  isTick,
  isWellFormedText,
  limits,
  nameProblem,
  OUTCOMES,
  plainFields,
  readRequest,
  sanitizeText,
  utf8Length,
} from '../core/index.ts';
import { sha256Hex } from '../evidence/index.ts';
import { InvalidInputError } from './errors.ts';
import type { By, ClaimRequest, Holder, Settlement } from './store.ts';

/** A text with its digest: the digest is proven by the chain, the text lies beside it. */
export interface Told {
  readonly digest: string;
  readonly text: string;
}

/** Requests of one batch, read; the first bad one is named by its place. */
export function readRequests(requests: unknown, field = 'jobs'): readonly Asked[] {
  if (!Array.isArray(requests)) throw new InvalidInputError(field, 'must be a list');
  if (requests.length > limits.enqueueBatchMax) {
    throw new InvalidInputError(field, `must hold at most ${limits.enqueueBatchMax} jobs in one call`);
  }
  return Array.from(requests, (request: unknown, index) => {
    const read = readRequest(request);
    if (read.ok) return read.asked;
    throw new InvalidInputError(`${field}[${index}].${read.problem.field}`, read.problem.problem);
  });
}

/** A whole number within bounds. */
export function readWhole(value: unknown, field: string, min: number, max: number): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw new InvalidInputError(field, `must be a whole number from ${min} to ${max}`);
}

/** A name of at most `bytesMax` UTF-8 bytes. */
export function readName(value: unknown, field: string, bytesMax: number): string {
  const problem = nameProblem(value, bytesMax);
  if (problem === null && typeof value === 'string') return value;
  throw new InvalidInputError(field, `${problem}`);
}

/** Who and why. */
export function readBy(by: unknown, field = 'by'): { readonly actor: string; readonly reason: Told | null } {
  const fields = plainFields(by);
  if (fields === null) throw new InvalidInputError(field, 'must be an object with actor and perhaps reason');
  const actor = readName(fields['actor'], `${field}.actor`, limits.actorBytesMax);
  const reason = fields['reason'] ?? null;
  if (reason === null) return { actor, reason: null };
  if (typeof reason !== 'string' || !isWellFormedText(reason) || utf8Length(reason) > limits.reasonBytesMax) {
    const rule = `must be text of at most ${limits.reasonBytesMax} UTF-8 bytes without lone surrogates`;
    throw new InvalidInputError(`${field}.reason`, rule);
  }
  return { actor, reason: { digest: sha256Hex(reason), text: reason } };
}

/** The plain form of an actor and a reason, for rows. */
export function byRow(by: By): { readonly actor: string; readonly reason: string | null } {
  const { actor, reason } = readBy(by);
  return { actor, reason: reason?.text ?? null };
}

/** Something with fields: callers without types may give anything, and a TypeError would name nothing. */
export function readFields<Value extends object>(value: Value, field: string): Value {
  if (typeof value === 'object' && value !== null) return value;
  throw new InvalidInputError(field, 'must be an object');
}

/** A list of at most `max` members. */
export function readList<Member>(value: readonly Member[], field: string, max: number): readonly Member[] {
  const list: unknown = value;
  if (Array.isArray(list) && list.length <= max) return value;
  throw new InvalidInputError(field, `must be a list of at most ${max}`);
}

/** An id and a token. Numbers that no store gives out are refused, so that they cannot be compared by accident. */
export function readHolder(holder: Holder, field: string): Holder {
  readFields(holder, field);
  const id = readWhole(holder.id, `${field}.id`, 1, limits.idMax);
  const token = readWhole(holder.token, `${field}.token`, 1, limits.tokenMax);
  return { id, token };
}

/** Members of one batch, at most `holdersBatchMax`. */
export function readBatch<Member>(members: readonly Member[], field: string): readonly Member[] {
  return readList(members, field, limits.holdersBatchMax);
}

/** A claim request within its bounds. */
export function readClaim(request: ClaimRequest, field = 'claim'): ClaimRequest {
  readFields(request, field);
  const definitions = readList(request.definitions, `${field}.definitions`, limits.definitionsMax);
  const kinds = new Set(definitions.map((definition) => readFields(definition, `${field}.definitions`).kind));
  if (kinds.size < definitions.length) {
    throw new InvalidInputError(`${field}.definitions`, 'must hold each kind once, at its newest revision');
  }
  const queues =
    request.queues == null ? null : readList(request.queues, `${field}.queues`, limits.definitionsMax);
  return {
    worker: readName(request.worker, `${field}.worker`, limits.workerBytesMax),
    requestId: readName(request.requestId, `${field}.requestId`, limits.requestIdBytesMax),
    leaseMs: readWhole(request.leaseMs, `${field}.leaseMs`, limits.leaseMsMin, limits.leaseMsMax),
    max: readWhole(request.max, `${field}.max`, 1, limits.claimBatchMax),
    definitions: definitions.map((definition, index) => {
      const at = `${field}.definitions[${index}]`;
      return { ...readKind(definition, at), idempotent: readFlag(definition.idempotent, `${at}.idempotent`) };
    }),
    queues:
      queues?.map((queue, index) => readName(queue, `${field}.queues[${index}]`, limits.queueBytesMax)) ??
      null,
    begin: readFlag(request.begin, `${field}.begin`),
  };
}

/** True or false, and nothing that only looks like it. */
export function readFlag(value: unknown, field: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new InvalidInputError(field, 'must be true or false');
}

/** A kind and its revision. */
export function readKind(
  definition: { readonly kind: string; readonly revision: number },
  field: string,
): { readonly kind: string; readonly revision: number } {
  readFields(definition, field);
  return {
    kind: readName(definition.kind, `${field}.kind`, limits.kindBytesMax),
    revision: readWhole(definition.revision, `${field}.revision`, limits.revisionMin, limits.revisionMax),
  };
}

/** A settlement in full, with its report: JSON text for a success, else a reason that is sanitised and never refused. */
export function readSettlement(
  settlement: Settlement,
  field: string,
): Required<{ readonly [Name in keyof Settlement]: Exclude<Settlement[Name], undefined> }> & {
  readonly neverCalled: boolean;
  readonly byUpgrade: boolean;
  readonly jitterMs: number;
  readonly told: Told;
} {
  const { outcome } = readFields(settlement, field);
  if (!OUTCOMES.includes(outcome)) {
    throw new InvalidInputError(`${field}.outcome`, `must be one of ${OUTCOMES.join(', ')}`);
  }
  const tickOf = (value: number | null | undefined, name: string): number | null => {
    if (value === undefined || value === null || isTick(value)) return value ?? null;
    throw new InvalidInputError(`${field}.${name}`, `must be a whole number from 0 to ${limits.tickMax}`);
  };
  const report = reportText(settlement, field);
  return {
    ...readHolder(settlement, field),
    worker: readName(settlement.worker, `${field}.worker`, limits.workerBytesMax),
    outcome,
    report,
    told: { digest: sha256Hex(report), text: report },
    delayMs: tickOf(settlement.delayMs, 'delayMs'),
    jitterMs: tickOf(settlement.jitterMs, 'jitterMs') ?? 0,
    until: tickOf(settlement.until, 'until'),
    neverCalled: settlement.neverCalled === true,
    byUpgrade: settlement.byUpgrade === true,
  };
}

function reportText(settlement: Settlement, field: string): string {
  const report = settlement.report ?? (settlement.outcome === 'succeeded' ? 'null' : '');
  if (typeof report !== 'string') throw new InvalidInputError(`${field}.report`, 'must be text');
  if (settlement.outcome !== 'succeeded') return sanitizeText(report, limits.reasonBytesMax);
  try {
    return readJson(JSON.parse(report), `${field}.report`);
  } catch (error) {
    if (error instanceof InvalidInputError) throw error;
    throw new InvalidInputError(`${field}.report`, 'must be JSON text');
  }
}

/** A value as canonical JSON text within the bounds of results. */
export function readJson(value: unknown, field: string): string {
  const canonical = canonicalJson(value, {
    maxDepth: limits.resultDepthMax,
    maxBytes: limits.resultBytesMax,
  });
  if (canonical.ok) return canonical.text;
  throw new InvalidInputError(field, `${canonical.problem} at ${canonical.path}`);
}
