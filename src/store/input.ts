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
import type { By, ClaimRequest, FindQuery, Holder, Settlement } from './store.ts';

/** A text with its digest: the digest is proven by the chain, the text lies beside it. */
export interface Told {
  readonly digest: string;
  readonly text: string;
}

/** Requests of one batch, read; the first bad one is named by its place. */
export function readRequests(requests: unknown, field = 'jobs'): readonly Asked[] {
  return readList(requests as readonly unknown[], field, limits.enqueueBatchMax).map((request, index) => {
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
  const fields: Record<string, unknown> = {
    ...readOptions(by as By & { role?: string }, field, ['actor', 'reason', 'role']),
  };
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

/**
 * The own fields of a plain object, none of them unknown: a misspelt option must not be silently without effect, and
 * neither getters nor proxies get to run code of their own. Callers without types may give anything.
 */
export function readOptions<Options extends object>(
  value: Options,
  field: string,
  known: readonly (keyof Options & string)[],
): Options {
  const fields = plainFields(value);
  if (fields === null) throw new InvalidInputError(field, 'must be a plain object');
  const unknown = Object.keys(fields).find((name) => !known.some((one) => one === name));
  if (unknown !== undefined) throw new InvalidInputError(`${field}.${unknown}`, 'is not an option');
  return fields as Options;
}

/** A list of at most `max` members, in an array of our own: one that was given may do anything when it is walked. */
export function readList<Member>(value: readonly Member[], field: string, max: number): readonly Member[] {
  const rule = `must be a list of at most ${max}`;
  if (!Array.isArray(value) || value.length > max) throw new InvalidInputError(field, rule);
  const list: Member[] = [];
  for (let index = 0; index < value.length; index++) {
    const property = Object.getOwnPropertyDescriptor(value, index);
    if (property === undefined || !('value' in property))
      throw new InvalidInputError(`${field}[${index}]`, 'is missing');
    list.push(property.value as Member);
  }
  return list;
}

export function readFunction<Value>(value: Value, field: string): Value {
  if (typeof value === 'function') return value;
  throw new InvalidInputError(field, 'must be a function');
}

/** What the store's clock says. A clock that tells no time is the program's mistake and no broken storage. */
export function readClock(clock: () => number): number {
  const read: unknown = clock();
  if (isTick(read)) return read;
  throw new InvalidInputError('clock', 'must answer a whole number of milliseconds from 0 to 2^53-1');
}

export function checkClockName(name: unknown): void {
  if (name !== 'unix' && name !== 'simulated')
    throw new InvalidInputError('clockName', 'must be unix or simulated');
}

/** Random ids as they are stored: what a lineage cannot be is refused when it is drawn. */
export function checkedIds(randomId: () => string): () => string {
  readFunction(randomId, 'randomId');
  return () => readName(randomId(), 'randomId', limits.lineageBytesMax);
}

/** An id and a token. Numbers that no store gives out are refused, so that they cannot be compared by accident. */
export function readHolder(holder: Holder, field: string): Holder {
  const known = readOptions(holder, field, ['id', 'token']);
  return holderOf(known, field);
}

function holderOf(holder: Holder, field: string): Holder {
  const id = readWhole(holder.id, `${field}.id`, 1, limits.idMax);
  const token = readWhole(holder.token, `${field}.token`, 1, limits.tokenMax);
  return { id, token };
}

/** Members of one batch, at most `holdersBatchMax`. */
export function readBatch<Member>(members: readonly Member[], field: string): readonly Member[] {
  return readList(members, field, limits.holdersBatchMax);
}

/** A claim request within its bounds. */
export function readClaim(given: ClaimRequest, field = 'claim'): ClaimRequest {
  const request = readOptions(given, field, [
    'worker',
    'leaseMs',
    'max',
    'requestId',
    'definitions',
    'queues',
    'begin',
  ]);
  const definitions = readDefinitions(request.definitions, `${field}.definitions`);
  const kinds = new Set(definitions.map((definition) => definition.kind));
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
    definitions,
    queues:
      queues?.map((queue, index) => readName(queue, `${field}.queues[${index}]`, limits.queueBytesMax)) ??
      null,
    begin: readFlag(request.begin, `${field}.begin`),
  };
}

/** What a claimer can run. */
export function readDefinitions(
  given: ClaimRequest['definitions'],
  field: string,
): ClaimRequest['definitions'] {
  return readList(given, field, limits.definitionsMax).map((one, index) => {
    const at = `${field}[${index}]`;
    const definition = readOptions(one, at, ['kind', 'revision', 'idempotent']);
    return { ...readKind(definition, at), idempotent: readFlag(definition.idempotent, `${at}.idempotent`) };
  });
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
  return {
    kind: readName(definition.kind, `${field}.kind`, limits.kindBytesMax),
    revision: readWhole(definition.revision, `${field}.revision`, limits.revisionMin, limits.revisionMax),
  };
}

/** A settlement in full, with its report: JSON text for a success, else a reason that is sanitised and never refused. */
export function readSettlement(
  given: Settlement,
  field: string,
): Required<{ readonly [Name in keyof Settlement]: Exclude<Settlement[Name], undefined> }> & {
  readonly neverCalled: boolean;
  readonly byUpgrade: boolean;
  readonly jitterMs: number;
  readonly told: Told;
} {
  const settlement = readOptions(given, field, [
    'id',
    'token',
    'worker',
    'outcome',
    'report',
    'delayMs',
    'jitterMs',
    'until',
    'neverCalled',
    'byUpgrade',
  ]);
  const { outcome } = settlement;
  if (!OUTCOMES.includes(outcome)) {
    throw new InvalidInputError(`${field}.outcome`, `must be one of ${OUTCOMES.join(', ')}`);
  }
  const tickOf = (value: number | null | undefined, name: string): number | null => {
    if (value === undefined || value === null || isTick(value)) return value ?? null;
    throw new InvalidInputError(`${field}.${name}`, `must be a whole number from 0 to ${limits.tickMax}`);
  };
  const report = reportText(settlement, field);
  return {
    ...holderOf(settlement, field),
    worker: readName(settlement.worker, `${field}.worker`, limits.workerBytesMax),
    outcome,
    report,
    told: { digest: sha256Hex(report), text: report },
    delayMs: tickOf(settlement.delayMs, 'delayMs'),
    jitterMs: tickOf(settlement.jitterMs, 'jitterMs') ?? 0,
    until: tickOf(settlement.until, 'until'),
    neverCalled: readFlag(settlement.neverCalled ?? false, `${field}.neverCalled`),
    byUpgrade: readFlag(settlement.byUpgrade ?? false, `${field}.byUpgrade`),
  };
}

function reportText(settlement: Settlement, field: string): string {
  const report = settlement.report ?? (settlement.outcome === 'succeeded' ? 'null' : '');
  if (typeof report !== 'string') throw new InvalidInputError(`${field}.report`, 'must be text');
  if (report.length > limits.resultBytesMax && settlement.outcome === 'succeeded') {
    throw new InvalidInputError(`${field}.report`, `must be at most ${limits.resultBytesMax} UTF-8 bytes`);
  }
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

/** What is asked for in a listing; lists and bounds are read, since a filter of another type would match everything. */
export function readQuery(given: FindQuery): FindQuery {
  const query = readOptions(given, 'query', [
    'states',
    'kinds',
    'queues',
    'orderingKey',
    'lineage',
    'needsYou',
    'internal',
    'afterId',
    'limit',
  ]);
  const list = <Value>(value: readonly Value[] | null | undefined, field: string): readonly Value[] | null =>
    value == null ? null : readList(value, field, limits.definitionsMax);
  return {
    ...query,
    states: list(query.states, 'query.states'),
    kinds: list(query.kinds, 'query.kinds'),
    queues: list(query.queues, 'query.queues'),
    needsYou: readFlag(query.needsYou ?? false, 'query.needsYou'),
    internal: readFlag(query.internal ?? false, 'query.internal'),
    afterId: readWhole(query.afterId ?? 0, 'query.afterId', 0, limits.idMax),
    limit: readWhole(query.limit ?? limits.findPageDefault, 'query.limit', 1, limits.findPageMax),
  };
}
