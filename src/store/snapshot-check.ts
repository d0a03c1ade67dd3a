/** Whether a snapshot agrees with itself: every job replays to its stored state, and no row contradicts another. */
import {
  compensationIsRequired,
  everRan,
  type Fact,
  internalKey,
  type Job,
  laneOf,
  limits,
  STATE,
  stateAwaitsWorker,
  stateIsTerminal,
} from '../core/index.ts';
import { type Chain, decodeEntry, factsOf, sha256Hex, unpackLedger, verifyJob } from '../evidence/index.ts';
import { textDigestsOf } from './engine/texts.ts';
import { SnapshotRefusedError } from './errors.ts';
import type { EffectRow } from './session.ts';
import { readSnapshot, type Snapshot, type SnapshotJob } from './snapshot.ts';

/** A job of a snapshot with its chain unpacked and proven. */
export interface ProvenJob extends SnapshotJob {
  readonly chain: Chain;
}

/** A snapshot that holds together. */
export interface ProvenSnapshot {
  readonly snapshot: Snapshot;
  readonly jobs: readonly ProvenJob[];
}

/**
 * Reads and proves a snapshot. Throws `SnapshotRefusedError` for the first field that is malformed, the first job whose
 * evidence does not lead to its stored state, or the first rows that contradict each other.
 */
export function checkSnapshot(value: unknown): ProvenSnapshot {
  const read = readSnapshot(value);
  if (!read.ok) throw new SnapshotRefusedError(read.problem.field, read.problem.problem);
  const snapshot = read.value;
  const jobs = snapshot.jobs.map((row, index) => proveJob(row, `snapshot.jobs[${index}]`));
  checkCounters(snapshot);
  checkUnique(snapshot);
  checkLanes(snapshot);
  checkKeys(snapshot);
  checkLinks(snapshot);
  checkEffects(snapshot, jobs);
  return { snapshot, jobs };
}

function refuse(field: string, problem: string): never {
  throw new SnapshotRefusedError(field, problem);
}

function proveJob(row: SnapshotJob, path: string): ProvenJob {
  const chain = readChain(row, path);
  const verified = verifyJob({ job: row.job, payload: row.payload, chain });
  const fault = verified.faults[0];
  if (fault !== undefined) refuse(path, `its evidence does not verify: ${fault.code}, ${fault.detail}`);
  const digests = new Set(row.texts.map(sha256Hex));
  checkTexts(digests, new Set(factsOf(chain).flatMap(textDigestsOf)), path);
  if (row.reportDigest !== null && !digests.has(row.reportDigest)) {
    refuse(`${path}.reportDigest`, 'must be the digest of one of texts');
  }
  if (row.claimRequestId !== null && row.job.lease === null) {
    refuse(`${path}.claimRequestId`, 'must be null without a lease');
  }
  if (row.dismissed !== null && !stateIsTerminal(row.job.state)) {
    refuse(`${path}.dismissed`, 'must be null before the job has ended');
  }
  checkReport(row, factsOf(chain), path);
  checkTestimony(row, factsOf(chain), path);
  row.testimony.forEach((one, index) => {
    const field = `${path}.testimony[${index}]`;
    if (one.token > row.job.token) refuse(`${field}.token`, 'must be one granted for this job');
    if (one.id !== row.job.id) refuse(`${field}.id`, `must be ${row.job.id}, the job it stands with`);
    if (one.digest !== sha256Hex(one.report)) refuse(`${field}.digest`, 'must be the digest of its report');
  });
  return { ...row, chain };
}

/** The report shown is the one that was accepted last, or that counted as a decision. */
function checkReport(row: SnapshotJob, facts: readonly Fact[], path: string): void {
  let last: string | null = null;
  for (const fact of facts) {
    if (fact.type === 'settled') last = fact.digest;
    if (fact.type === 'reconciled' && fact.by === 'late_report') last = fact.reason;
  }
  if (row.reportDigest !== last)
    refuse(`${path}.reportDigest`, 'must be the digest of the last accepted report');
}

/** Testimony that says it is an entry is one, and no entry is without its row. */
function checkTestimony(row: SnapshotJob, facts: readonly Fact[], path: string): void {
  const name = (one: {
    tick: number;
    worker: string;
    token: number;
    outcome: string;
    digest: string;
  }): string => JSON.stringify([one.tick, one.worker, one.token, one.outcome, one.digest]);
  const stated = facts.flatMap((fact) => (fact.type === 'testimony' ? [name(fact)] : []));
  const chained = new Set(row.testimony.filter((one) => one.chained).map(name));
  for (const one of chained) {
    if (!stated.includes(one))
      refuse(`${path}.testimony`, 'must not call an entry what the ledger does not state');
  }
}

/** Texts are those the ledger states digests of, none missing and none beside them. */
function checkTexts(given: ReadonlySet<string>, stated: ReadonlySet<string>, path: string): void {
  for (const digest of stated) {
    if (!given.has(digest))
      refuse(`${path}.texts`, `must hold the text with digest ${digest}, which the ledger states`);
  }
  for (const digest of given) {
    if (!stated.has(digest))
      refuse(`${path}.texts`, `must not hold a text whose digest ${digest} no entry states`);
  }
}

function readChain(row: SnapshotJob, path: string): Chain {
  const entries = unpack(row.ledger, `${path}.ledger`);
  const open = unpack(row.open, `${path}.open`).map((entry, index) => {
    const decoded = decodeEntry(entry);
    const field = `${path}.open[${index}]`;
    if (!decoded.ok) return refuse(`${field}.${decoded.field}`, decoded.problem);
    const { fact } = decoded;
    if (fact.type === 'claimed' || fact.type === 'begun') return fact;
    return refuse(field, 'must be a claim or a begin');
  });
  if (open.length > 2) refuse(`${path}.open`, 'must hold at most a claim and its begin');
  return { root: row.root, entries, open };
}

function unpack(base64: string, field: string): readonly Uint8Array[] {
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64) refuse(field, 'must be base64 in its one canonical form');
  const unpacked = unpackLedger(bytes);
  return unpacked.ok ? unpacked.entries : refuse(`${field}.${unpacked.field}`, unpacked.problem);
}

/** Counters lie above everything given out, or the next id, token or tick would repeat an old one. */
function checkCounters(snapshot: Snapshot): void {
  const { nextId, nextToken, lastTick } = snapshot.counters;
  for (const [name, next] of Object.entries({ nextId, nextToken })) {
    if (next > limits.idMax - limits.restoreGap) {
      refuse(`snapshot.counters.${name}`, `must leave room for ${limits.restoreGap} more`);
    }
  }
  snapshot.jobs.forEach(({ job }, index) => {
    const field = `snapshot.jobs[${index}].job`;
    if (job.id >= nextId) refuse('snapshot.counters.nextId', `must be above ${job.id}, an id given out`);
    const { lease } = job;
    // A lease ends within its longest length from when it was given or renewed, which was not after the last tick.
    if (lease !== null && lease.expiresAt > lastTick + limits.leaseMsMax) {
      refuse(`${field}.lease.expiresAt`, `must not be after ${lastTick + limits.leaseMsMax}`);
    }
    if (job.token >= nextToken) {
      refuse('snapshot.counters.nextToken', `must be above ${job.token}, a token given out`);
    }
    // What ended while the clock ran ahead keeps its tick: nothing follows it that could fall behind.
    const goesOn = !stateIsTerminal(job.state);
    if (goesOn && job.tick > lastTick)
      refuse(`${field}.tick`, `must not be after ${lastTick}, the last tick`);
  });
}

function checkUnique(snapshot: Snapshot): void {
  const unique = (field: string, values: readonly unknown[]): void => {
    const seen = new Set<unknown>();
    values.forEach((value, index) => {
      if (seen.has(value)) refuse(`${field}[${index}]`, `must not stand twice: ${String(value)}`);
      seen.add(value);
    });
  };
  unique(
    'snapshot.jobs',
    snapshot.jobs.map(({ job }) => job.id),
  );
  unique(
    'snapshot.keys',
    snapshot.keys.map(({ key }) => key),
  );
  unique(
    'snapshot.queues',
    snapshot.queues.map(({ queue }) => queue),
  );
  unique('snapshot.effects', snapshot.effects.map(effectName));
  unique(
    'snapshot.definitions',
    snapshot.definitions.map((one) => JSON.stringify(one)),
  );
  unique(
    'snapshot.jobs',
    snapshot.jobs.flatMap(({ job }) => (job.token === 0 ? [] : [`token ${job.token}`])),
  );
}

function effectName({ lineage, occurrence, key }: EffectRow): string {
  return JSON.stringify([lineage, occurrence, key]);
}

/** One job of a lane at a time is leased, running or uncertain: which one, admission and commit order decided. */
function checkLanes(snapshot: Snapshot): void {
  const busy = new Map<string, number>();
  snapshot.jobs.forEach(({ job }, index) => {
    const lane = laneOf(job.submission.queue, job.submission.orderingKey);
    if (lane === null || stateIsTerminal(job.state) || stateAwaitsWorker(job.state)) return;
    const other = busy.get(lane);
    if (other !== undefined) {
      refuse(`snapshot.jobs[${index}].job.state`, `must wait: job ${other} is in progress in its lane`);
    }
    busy.set(lane, job.id);
  });
}

function checkKeys(snapshot: Snapshot): void {
  const jobs = new Map(snapshot.jobs.map(({ job }) => [job.id, job]));
  const keys = new Map(snapshot.keys.map((row) => [row.key, row]));
  snapshot.keys.forEach((row, index) => {
    const field = `snapshot.keys[${index}]`;
    const job = jobs.get(row.jobId);
    if (row.jobId >= snapshot.counters.nextId) refuse(`${field}.jobId`, 'must be an id given out');
    if (job === undefined) {
      if (row.keepUntil === null) refuse(`${field}.keepUntil`, 'must be set: its job is not here');
      return;
    }
    if (job.submission.idempotencyKey !== row.key) refuse(`${field}.jobId`, 'must be a job with this key');
    if (job.submission.descriptor !== row.descriptor) {
      refuse(`${field}.descriptor`, "must be its job's descriptor");
    }
    if (row.keepUntil !== null && job.endedAt !== null && row.keepUntil < job.endedAt) {
      refuse(`${field}.keepUntil`, 'must not be before the end of its job');
    }
    if ((job.endedAt === null) !== (row.keepUntil === null)) {
      refuse(`${field}.keepUntil`, 'must be set exactly when its job has ended');
    }
  });
  snapshot.jobs.forEach(({ job }, index) => {
    const { idempotencyKey, internal } = job.submission;
    const field = `snapshot.jobs[${index}].job.submission.idempotencyKey`;
    if (idempotencyKey !== null && keys.get(idempotencyKey)?.jobId !== job.id) {
      refuse(field, 'must stand among the keys, for this job');
    }
    if (internal !== null && idempotencyKey !== internalKey(internal)) {
      refuse(field, `must be ${internalKey(internal)}`);
    }
  });
}

function checkLinks(snapshot: Snapshot): void {
  const rows = new Map(snapshot.jobs.map((row) => [row.job.id, row]));
  const keys = new Set(snapshot.keys.map(({ key }) => key));
  snapshot.jobs.forEach((row, index) => {
    const field = `snapshot.jobs[${index}]`;
    const { id, state, submission } = row.job;
    const to = row.redrivenTo === null ? undefined : rows.get(row.redrivenTo);
    if (row.redrivenTo !== null) {
      const later = row.redrivenTo > id && row.redrivenTo < snapshot.counters.nextId;
      if (!stateIsTerminal(state) || !later)
        refuse(`${field}.redrivenTo`, 'must be a later job, of one that has ended');
    }
    if (to !== undefined && to.job.submission.inherited?.fromId !== id) {
      refuse(`${field}.redrivenTo`, 'must be a job made from this one');
    }
    if (submission.inherited !== null) checkOrigin(row, rows, `${field}.job.submission`);
    if (submission.internal !== null) checkInternal(row, rows, snapshot, `${field}.job.submission.internal`);
    else checkAsked(row.job, keys, field);
  });
  checkLineages(snapshot);
}

/** What follows from where a job stands was enqueued with it: a compensation that is due, a reconciler that is asked. */
function checkAsked(job: Job, keys: ReadonlySet<string>, field: string): void {
  const { reconciles, compensates } = job.submission;
  const link = { parentId: job.id, parentToken: job.token };
  const undone = compensates && compensationIsRequired(everRan(job), job.state);
  if (undone && !keys.has(internalKey({ purpose: 'compensate', ...link }))) {
    refuse(field, 'must have its compensation among the keys');
  }
  const asked = reconciles && job.state === STATE.UNCERTAIN;
  if (asked && !keys.has(internalKey({ purpose: 'reconcile', ...link }))) {
    refuse(field, 'must have its reconcile job among the keys');
  }
}

/** A job made again resembles the one it was made from, and inherits what that one really left behind. */
function checkOrigin(row: SnapshotJob, rows: ReadonlyMap<number, SnapshotJob>, field: string): void {
  const { submission } = row.job;
  const { inherited } = submission;
  if (inherited === null) return;
  if (inherited.fromId >= row.job.id) refuse(`${field}.inherited.fromId`, 'must be an earlier job');
  const from = rows.get(inherited.fromId);
  if (from === undefined) return;
  if (from.redrivenTo !== row.job.id) refuse(`${field}.inherited.fromId`, 'must be a job that links here');
  const own = from.job.submission;
  const alike =
    own.kind === submission.kind &&
    own.queue === submission.queue &&
    own.orderingKey === submission.orderingKey &&
    own.payloadDigest === submission.payloadDigest &&
    from.job.occurrence === inherited.occurrence;
  if (!alike) refuse(`${field}.inherited.fromId`, 'must be a job of the same kind, queue, lane and payload');
  const sameLineage = own.lineage === submission.lineage;
  const committed = sameLineage && from.job.requiredEffectCommitted;
  if (inherited.requiredEffectCommitted !== committed) {
    refuse(`${field}.inherited.requiredEffectCommitted`, 'must be what the earlier job left behind');
  }
}

/** An internal job belongs to an attempt that its parent really had. */
function checkInternal(
  row: SnapshotJob,
  rows: ReadonlyMap<number, SnapshotJob>,
  snapshot: Snapshot,
  field: string,
): void {
  const { internal } = row.job.submission;
  if (internal === null) return;
  const { purpose, parentId, parentToken } = internal;
  if (parentId >= row.job.id) refuse(`${field}.parentId`, 'must be an earlier job');
  if (parentToken >= snapshot.counters.nextToken) refuse(`${field}.parentToken`, 'must be a token given out');
  const parent = rows.get(parentId);
  if (parent === undefined) {
    // A reconciler called off while it was being asked may outlive a parent that was decided and pruned meanwhile.
    const calledOff = row.job.endedAt !== null || row.job.cancelRequested;
    if (!calledOff) refuse(`${field}.parentId`, 'must be a job that is here');
    return;
  }
  const { reconciles, compensates } = parent.job.submission;
  if (purpose === 'reconcile' ? !reconciles : !compensates)
    refuse(field, 'must be what its parent has a hook for');
  if (parentToken > parent.job.token) refuse(`${field}.parentToken`, 'must be a token of its parent');
}

/** A lineage is one job and those made again from it: another job in it would take over their effects. */
function checkLineages(snapshot: Snapshot): void {
  const first = new Map<string, number>();
  snapshot.jobs.forEach(({ job }, index) => {
    if (job.submission.inherited !== null) return;
    const { lineage } = job.submission;
    const other = first.get(lineage);
    if (other !== undefined) {
      refuse(`snapshot.jobs[${index}].job.submission.lineage`, `must be its own: job ${other} began it`);
    }
    first.set(lineage, job.id);
  });
}

/** Marks and the ledger tell the same: a forged mark would skip an effect, a missing one would repeat it. */
function checkEffects(snapshot: Snapshot, jobs: readonly ProvenJob[]): void {
  const proven = new Map<string, Proof>();
  for (const { job, chain } of jobs) collectProofs(job, factsOf(chain), proven);
  const marks = new Map(snapshot.effects.map((mark) => [effectName(mark), mark]));
  const stored = new Set(jobs.map(({ job }) => job.id));
  for (const [name, proof] of proven) {
    const mark = marks.get(name);
    if (mark === undefined) refuse('snapshot.effects', `must hold the mark ${name}, which the ledger states`);
    if (
      mark.type !== proof.type ||
      mark.done !== (proof.result !== null) ||
      mark.descriptor !== proof.descriptor
    ) {
      refuse('snapshot.effects', `must hold the mark ${name} as the ledger states it`);
    }
    if ((mark.result === null ? null : sha256Hex(mark.result)) !== proof.result) {
      refuse('snapshot.effects', `must hold the result of ${name} that the ledger states`);
    }
  }
  // A mark whose job was pruned is left only to the jobs that were made again from it, in the same lineage.
  const inheriting = new Set(
    jobs.flatMap(({ job: { submission } }) => (submission.inherited === null ? [] : [submission.lineage])),
  );
  snapshot.effects.forEach((mark, index) => {
    const field = `snapshot.effects[${index}]`;
    if (stored.has(mark.jobId) && !proven.has(effectName(mark))) {
      refuse(field, `must be stated by the ledger of job ${mark.jobId}`);
    }
    const left = mark.jobId < snapshot.counters.nextId && inheriting.has(mark.lineage);
    if (!stored.has(mark.jobId) && !left)
      refuse(`${field}.jobId`, 'must be a job of this lineage that was stored');
  });
}

interface Proof {
  readonly type: 'commit' | 'step';
  readonly descriptor: string;
  /** Digest of the result, null while a step is open. */
  readonly result: string | null;
}

/** What a job's ledger says of effects. Occurrences are told apart by the entries that end them. */
function collectProofs(job: Job, facts: readonly Fact[], proven: Map<string, Proof>): void {
  const { lineage, inherited } = job.submission;
  let occurrence = inherited?.occurrence ?? 0;
  const name = (key: string): string => JSON.stringify([lineage, occurrence, key]);
  for (const fact of facts) {
    if (fact.type === 'effect_committed') {
      proven.set(name(fact.key), { type: 'commit', descriptor: fact.descriptor, result: fact.result });
    } else if (fact.type === 'step_begun') {
      proven.set(name(fact.key), { type: 'step', descriptor: fact.descriptor, result: null });
    } else if (fact.type === 'step_done') {
      const begun = proven.get(name(fact.key));
      if (begun !== undefined) proven.set(name(fact.key), { ...begun, result: fact.result });
    } else if (fact.type === 'reconciled') {
      for (const { key, tookPlace, result } of fact.steps) {
        const begun = proven.get(name(key));
        if (begun !== undefined && tookPlace) proven.set(name(key), { ...begun, result });
        if (!tookPlace) proven.delete(name(key));
      }
    }
    if ('cause' in fact && fact.cause === 'recurrence') occurrence += 1;
  }
}
