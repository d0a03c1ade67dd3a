/** Claim, begin, extend and settle in memory: one holder per job, and every write of an attempt fenced by its token. */
import { type Command, type Decision, type Job, limits } from '../../core/index.ts';
import { readBatch, readHolder, readSettlement, readWhole } from '../input.ts';
import type { ClaimRequest, Delivery, ExtendVerdict, Holder, Settlement, Verdict } from '../store.ts';
import type { Route } from './claim-index.ts';
import type { Row } from './tables.ts';
import { NO_CONTEXT, testimonyOf, type World } from './world.ts';

const UNKNOWN_JOB = { ok: false, refused: 'unknown_job', job: null } as const;

/** Claims inside the open transaction. */
export function claim(world: World, request: ClaimRequest, now: number): readonly Delivery[] {
  world.lapseOverdue(now, Number.MAX_SAFE_INTEGER);
  seen(world, request, now);
  const held = repeatedClaim(world, request);
  if (held.length > 0) return held;
  const own = new Map(request.definitions.map((definition) => [definition.kind, definition]));
  const permitted = (route: Route): boolean =>
    (own.get(route.kind)?.revision ?? 0) >= route.revision &&
    (request.queues?.includes(route.queue) ?? true) &&
    (route.internal || !world.isPaused(route.queue));
  const claimed: Delivery[] = [];
  while (claimed.length < request.max) {
    const row = world.index.pick(now, world.tables.counters.nextToken, permitted);
    if (row === null) break;
    claimed.push(claimRow(world, row, request, now));
  }
  return claimed;
}

/** What was selected is decided again: a difference between the selection and `decide` is a bug, and stops here. */
function claimRow(world: World, row: Row, request: ClaimRequest, now: number): Delivery {
  const definition = request.definitions.find((one) => one.kind === row.job.submission.kind) ?? null;
  const { worker, leaseMs } = request;
  const token = world.takeToken();
  const context = {
    ...NO_CONTEXT,
    laneHead: world.index.isHead(row.job),
    queuePaused: world.isPaused(row.job.submission.queue),
    claimer: definition,
  };
  const marked = world.amend(row, { claimRequestId: request.requestId });
  const decision = world.decide(marked, { type: 'claim', token, worker, leaseMs }, context, now);
  if (!decision.accepted) throw new Error(`job ${row.job.id} was selected but refused: ${decision.refused}`);
  if (!request.begin) return { job: decision.job, payload: row.payload };
  const leased = rowOf(world, row.job.id);
  const begun = world.decide(leased, { type: 'begin', token }, context, now);
  if (!begun.accepted) throw new Error(`job ${row.job.id} was claimed but not begun: ${begun.refused}`);
  return { job: begun.job, payload: row.payload };
}

function repeatedClaim(world: World, request: ClaimRequest): readonly Delivery[] {
  return world.index
    .heldBy(request.requestId)
    .map((id) => rowOf(world, id))
    .filter((row) => row.job.lease?.worker === request.worker)
    .map(({ job, payload }) => ({ job, payload }));
}

/** A worker is alive as long as it asks; leases do not depend on it. */
function seen(world: World, request: ClaimRequest, now: number): void {
  const definitions = request.definitions.map(({ kind, revision }) => ({ kind, revision }));
  world.tables.workers.set(request.worker, { worker: request.worker, seenAt: now, definitions });
}

export function begin(world: World, holders: readonly Holder[], now: number): readonly Verdict[] {
  return holders.map((holder) => {
    const row = world.tables.rows.get(holder.id);
    if (row === undefined) return UNKNOWN_JOB;
    const context = { ...NO_CONTEXT, queuePaused: world.isPaused(row.job.submission.queue) };
    return verdictOf(world.decide(row, { type: 'begin', token: holder.token }, context, now));
  });
}

export function extend(
  world: World,
  extensions: readonly (Holder & { readonly extendMs: number })[],
  now: number,
): readonly ExtendVerdict[] {
  return extensions.map(({ id, token, extendMs }) => {
    const row = world.tables.rows.get(id);
    if (row === undefined) return { status: 'lost', refused: 'unknown_job', job: null };
    const decision = world.decide(row, { type: 'extend', token, extendMs }, NO_CONTEXT, now);
    if (!decision.accepted) return { status: 'lost', refused: decision.refused, job: decision.job };
    keepAlive(world, decision.job, now);
    return { status: 'extended', expiresAt: now + extendMs, job: decision.job };
  });
}

function keepAlive(world: World, job: Job, now: number): void {
  const worker = job.lease === null ? undefined : world.tables.workers.get(job.lease.worker);
  if (worker !== undefined) world.tables.workers.set(worker.worker, { ...worker, seenAt: now });
}

export function settle(world: World, settlements: readonly Settlement[], now: number): readonly Verdict[] {
  return settlements.map((settlement, index) => settleOne(world, settlement, `settlements[${index}]`, now));
}

/** Settles one attempt; whatever it reports is kept, also when it may not settle. */
export function settleOne(world: World, settlement: Settlement, field: string, now: number): Verdict {
  const read = readSettlement(settlement, field);
  const row = world.tables.rows.get(read.id);
  if (row === undefined) return UNKNOWN_JOB;
  const { token, worker, outcome, delayMs, jitterMs, until, neverCalled, byUpgrade, told } = read;
  const command: Command = {
    type: 'settle',
    token,
    worker,
    outcome,
    digest: told.digest,
    delayMs,
    jitterMs,
    until,
    neverCalled,
    byUpgrade,
  };
  const decision = world.decide(row, command, NO_CONTEXT, now, [told]);
  const written = rowOf(world, row.job.id);
  const chained = decision.facts.some((fact) => fact.type === 'testimony');
  const decided = decision.facts.some((fact) => fact.type === 'reconciled');
  const settled = decision.accepted && !decision.duplicate;
  if (settled || decided) world.amend(written, { reportDigest: told.digest });
  if (chained || (!decision.accepted && decision.testimony)) {
    world.testify(rowOf(world, row.job.id), testimonyOf(read, told, now, chained));
  }
  return verdictOf(decision);
}

/** The row of a job that is known to be stored. */
export function rowOf(world: World, id: number): Row {
  const row = world.tables.rows.get(id);
  if (row === undefined) throw new Error(`job ${id} vanished inside a transaction`);
  return row;
}

export function verdictOf(decision: Decision): Verdict {
  if (!decision.accepted) return { ok: false, refused: decision.refused, job: decision.job };
  return { ok: true, duplicate: decision.duplicate, job: decision.job };
}

/** Reads and bounds what begin is given. */
export function readHolders(holders: readonly Holder[]): readonly Holder[] {
  return readBatch(holders, 'holders').map((holder, index) => readHolder(holder, `holders[${index}]`));
}

/** An extension of one lease. */
type Extension = Holder & { readonly extendMs: number };

/** Reads and bounds what extend is given. */
export function readExtensions(extensions: readonly Extension[]): readonly Extension[] {
  return readBatch(extensions, 'extensions').map((extension, index) => {
    const field = `extensions[${index}]`;
    const extendMs = readWhole(extension.extendMs, `${field}.extendMs`, limits.leaseMsMin, limits.leaseMsMax);
    return { ...readHolder(extension, field), extendMs };
  });
}

/** Refuses a batch with a bad member as a whole, before any of it is settled. */
export function checkSettlements(settlements: readonly Settlement[]): void {
  for (const [index, one] of readBatch(settlements, 'settlements').entries()) {
    readSettlement(one, `settlements[${index}]`);
  }
}
