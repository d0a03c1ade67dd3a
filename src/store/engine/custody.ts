/** Claim, begin, extend and settle: one holder per job, and every write of an attempt fenced by its token. */
import { type Command, type Decision, limits } from '../../core/index.ts';
import { readBatch, readHolder, readOptions, readSettlement, readWhole } from '../input.ts';
import type { Row } from '../session.ts';
import type { ClaimRequest, Delivery, ExtendVerdict, Holder, Settlement, Verdict } from '../store.ts';
import { type Engine, NO_CONTEXT } from './engine.ts';

const UNKNOWN_JOB = { ok: false, refused: 'unknown_job', job: null } as const;

/** Claims inside the open transaction. */
export function claim(engine: Engine, request: ClaimRequest): readonly Delivery[] {
  engine.lapseOverdue(Number.MAX_SAFE_INTEGER);
  engine.session.seeWorker(request.worker, request.definitions);
  const held = repeatedClaim(engine, request);
  if (held.length > 0) return held;
  const picker = engine.session.picker(request);
  const claimed: Delivery[] = [];
  while (claimed.length < request.max) {
    const row = picker.next(engine.session.peekToken());
    if (row === null) break;
    claimed.push(claimRow(engine, row, request, engine.session.takeToken()));
  }
  return claimed;
}

/** What was selected is decided again: a difference between the selection and `decide` is a bug, and stops here. */
function claimRow(engine: Engine, row: Row, request: ClaimRequest, token: number): Delivery {
  const definition = request.definitions.find((one) => one.kind === row.job.submission.kind) ?? null;
  const { worker, leaseMs } = request;
  const context = {
    ...NO_CONTEXT,
    laneHead: engine.session.isHead(row.job),
    queuePaused: engine.isPaused(row.job.submission.queue),
    claimer: definition,
  };
  const marked = engine.amend(row, { claimRequestId: request.requestId });
  const decision = engine.decide(marked, { type: 'claim', token, worker, leaseMs }, context);
  if (!decision.accepted) throw new Error(`job ${row.job.id} was selected but refused: ${decision.refused}`);
  if (!request.begin) return { job: decision.job, payload: engine.session.payload(row.job.id) };
  const leased = engine.rowOf(row.job.id);
  const begun = engine.decide(leased, { type: 'begin', token }, context);
  if (!begun.accepted) throw new Error(`job ${row.job.id} was claimed but not begun: ${begun.refused}`);
  return { job: begun.job, payload: engine.session.payload(row.job.id) };
}

/** What the request was answered before, in the order of its tokens, as far as it lasts. */
function repeatedClaim(engine: Engine, request: ClaimRequest): readonly Delivery[] {
  return [...engine.session.heldBy(request.requestId)]
    .filter((row) => row.job.lease?.worker === request.worker)
    .sort((a, b) => a.job.token - b.job.token)
    .map(({ job }) => ({ job, payload: engine.session.payload(job.id) }));
}

export function begin(engine: Engine, holders: readonly Holder[]): readonly Verdict[] {
  return holders.map((holder) => {
    const row = engine.session.row(holder.id);
    if (row === undefined) return UNKNOWN_JOB;
    const context = { ...NO_CONTEXT, queuePaused: engine.isPaused(row.job.submission.queue) };
    return verdictOf(engine.decide(row, { type: 'begin', token: holder.token }, context));
  });
}

export function extend(
  engine: Engine,
  extensions: readonly (Holder & { readonly extendMs: number })[],
): readonly ExtendVerdict[] {
  return extensions.map(({ id, token, extendMs }) => {
    const row = engine.session.row(id);
    if (row === undefined) return { status: 'lost', refused: 'unknown_job', job: null };
    const decision = engine.decide(row, { type: 'extend', token, extendMs }, NO_CONTEXT);
    if (!decision.accepted) return { status: 'lost', refused: decision.refused, job: decision.job };
    if (decision.job.lease !== null) engine.session.keepWorkerAlive(decision.job.lease.worker);
    return { status: 'extended', expiresAt: engine.now + extendMs, job: decision.job };
  });
}

export function settle(engine: Engine, settlements: readonly Settlement[]): readonly Verdict[] {
  return settlements.map((settlement, index) => settleOne(engine, settlement, `settlements[${index}]`));
}

/** Settles one attempt; whatever it reports is kept, also when it may not settle. */
export function settleOne(engine: Engine, settlement: Settlement, field: string): Verdict {
  const read = readSettlement(settlement, field);
  const row = engine.session.row(read.id);
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
  const decision = engine.decide(row, command, NO_CONTEXT, [told]);
  const written = engine.rowOf(row.job.id);
  const chained = decision.facts.some((fact) => fact.type === 'testimony');
  const decided = decision.facts.some((fact) => fact.type === 'reconciled');
  const settled = decision.accepted && !decision.duplicate;
  if (settled || decided) engine.amend(written, { reportDigest: told.digest });
  if (chained || (!decision.accepted && decision.testimony)) engine.testify(read, told, chained);
  return verdictOf(decision);
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
    const { extendMs, ...holder } = readOptions(extension, field, ['id', 'token', 'extendMs']);
    const read = readHolder(holder, field);
    return {
      ...read,
      extendMs: readWhole(extendMs, `${field}.extendMs`, limits.leaseMsMin, limits.leaseMsMax),
    };
  });
}

/** Refuses a batch with a bad member as a whole, before any of it is settled. */
export function checkSettlements(settlements: readonly Settlement[]): void {
  for (const [index, one] of readBatch(settlements, 'settlements').entries()) {
    readSettlement(one, `settlements[${index}]`);
  }
}
