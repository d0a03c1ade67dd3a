/** Custody: tokens, holders, lanes, deadlines, pauses, and what becomes of an attempt that was lost. */
import {
  type Fact,
  type Job,
  laneOf,
  STATE,
  stateAwaitsWorker,
  stateHoldsLease,
  stateIsTerminal,
} from '../../src/core/index.ts';
import type { ClaimRequest, Verdict } from '../../src/store/store.ts';
import { lapsedAt } from './audit-frame.ts';
import type { Claims } from './claims.ts';
import type { Attempts, Memory } from './memory-of-history.ts';
import type { Step } from './step.ts';

type Of<Type extends Fact['type']> = Extract<Fact, { readonly type: Type }>;

export function auditCustody(step: Step, memory: Memory, claims: Claims): void {
  const granted: { readonly job: Job; readonly fact: Of<'claimed'> }[] = [];
  for (const [id, facts] of step.recorded) {
    const job = step.after.get(id)?.job;
    if (job === undefined) continue;
    facts.forEach((fact, index) => {
      if (fact.type === 'claimed') {
        granted.push({ job, fact });
        auditHolder(step, job, facts.slice(0, index), claims);
      }
      if (fact.type === 'claimed' || fact.type === 'begun') auditStart(step, job, fact, memory, claims);
      memory.attempts.set(id, auditAttempt(job, fact, memory.attempts.get(id), claims));
    });
    auditMove(step, job, facts, claims);
  }
  for (const { job, fact } of granted.sort((a, b) => a.fact.token - b.fact.token)) {
    const rises = fact.token > memory.lastToken && fact.token >= memory.tokenFloor;
    claims.hold(
      'tokensRise',
      rises,
      () => `job ${job.id} got ${fact.token} after ${memory.lastToken}, floor ${memory.tokenFloor}`,
    );
    memory.lastToken = fact.token;
    auditLaneStart(step, job, memory, claims);
  }
  auditLanes(step, claims);
  for (const write of writesOf(step)) auditWrite(step, write, claims);
}

/** A write of an attempt: the token it carried and what it was told; `refused` null when it took effect. */
interface Write {
  readonly id: number;
  readonly token: number;
  readonly refused: string | null;
}

function writesOf({ call }: Step): readonly Write[] {
  switch (call.verb) {
    case 'begin':
      return call.holders.map((holder, index) => ({ ...holder, refused: refusalOf(call.verdicts[index]) }));
    case 'settle':
      return call.settlements.map((one, index) => ({ ...one, refused: refusalOf(call.verdicts[index]) }));
    case 'extend':
      return call.extensions.map((one, index) => {
        const verdict = call.verdicts[index];
        return { ...one, refused: verdict?.status === 'lost' ? verdict.refused : null };
      });
    case 'transact': {
      const refused = call.answer === 'threw' || call.answer.ok ? null : call.answer.refused;
      return [{ ...call.holder, refused }];
    }
    default:
      return [];
  }
}

function refusalOf(verdict: Verdict | undefined): string | null {
  if (verdict?.ok === false) return verdict.refused;
  return verdict?.duplicate === true ? 'duplicate' : null;
}

/** Who does not hold the job as time has left it writes nothing, and only who never was the last one is stale. */
function auditWrite(step: Step, { id, token, refused }: Write, claims: Claims): void {
  const before = step.before.get(id)?.job;
  if (before === undefined) return;
  const job = lapsedAt(step, before);
  const stale = token !== job.token;
  claims.hold(
    'staleChangesNothing',
    stale === (refused === 'stale_token') && (refused !== null || job.lease?.token === token),
    () =>
      `token ${token} of job ${id}, whose last one is ${job.token}, was told ${refused ?? 'that it took effect'}`,
  );
}

/** Nobody may hold the job at the moment it is given away, unless the holder settled it in this very commit. */
function auditHolder(step: Step, job: Job, earlier: readonly Fact[], claims: Claims): void {
  const before = step.before.get(job.id)?.job;
  const heldBy = before === undefined ? null : lapsedAt(step, before).lease;
  const free = heldBy === null || earlier.some((fact) => fact.type === 'settled');
  claims.hold(
    'oneHolder',
    free,
    () => `job ${job.id} was held under token ${heldBy?.token} until ${heldBy?.expiresAt}`,
  );
}

function auditStart(
  step: Step,
  job: Job,
  fact: Of<'claimed'> | Of<'begun'>,
  memory: Memory,
  claims: Claims,
): void {
  const { deadline, queue, internal, kind, revision } = job.submission;
  const what = `job ${job.id} was ${fact.type} at ${fact.tick}`;
  if (deadline !== null)
    claims.hold('noBeginAtDeadline', fact.tick < deadline, () => `${what}, deadline ${deadline}`);
  if (internal === null && memory.paused.size > 0) {
    claims.hold('pauses', !memory.paused.has(queue), () => `${what} in ${queue}, which is paused`);
  }
  const request = claimOf(step);
  if (fact.type === 'begun' || request === null) return;
  const known = request.definitions.find((one) => one.kind === kind);
  const able = known !== undefined && known.revision >= revision;
  claims.hold(
    'capability',
    able,
    () => `${what} by one who knows ${JSON.stringify(known)}, not revision ${revision}`,
  );
  const contract =
    !fact.idempotent || (job.submission.idempotent && (known?.idempotent === true || internal !== null));
  claims.hold('capability', contract, () => `${what} as idempotent`);
}

export function claimOf(step: Step): ClaimRequest | null {
  return step.call.verb === 'claim' || step.call.verb === 'settle' ? step.call.claim : null;
}

/** Follows the attempts of a job through its facts. */
function auditAttempt(job: Job, fact: Fact, known: Attempts | undefined, claims: Claims): Attempts {
  const was = known ?? { idempotent: job.submission.idempotent, running: null, undecided: false };
  const name = `job ${job.id}`;
  switch (fact.type) {
    case 'claimed':
      return { ...was, idempotent: fact.idempotent };
    case 'begun': {
      const safe = !was.undecided;
      claims.hold(
        'noSilentRerun',
        safe,
        () => `${name} began attempt ${fact.attempt} over one that nobody had decided`,
      );
      return { ...was, running: fact.token };
    }
    case 'lapsed': {
      if (was.running === null) return was;
      const uncertain = fact.to === STATE.UNCERTAIN;
      claims.hold(
        'lossIsUncertain',
        uncertain !== was.idempotent,
        () => `${name}, idempotent ${was.idempotent}, went to state ${fact.to}`,
      );
      return { ...was, running: null, undecided: uncertain };
    }
    case 'settled':
      return { ...was, running: null, undecided: fact.to === STATE.UNCERTAIN };
    case 'retry_decided':
    case 'reconciled': {
      const retried = fact.type === 'retry_decided' || fact.decision === 'retry';
      claims.hold(
        'noSilentRerun',
        !retried || was.idempotent,
        () => `${name} is not idempotent and was decided to run again`,
      );
      return { ...was, undecided: false };
    }
    default:
      return was;
  }
}

/** What a job may have become in this step, wherever it came from. */
function auditMove(step: Step, job: Job, facts: readonly Fact[], claims: Claims): void {
  const { deadline } = job.submission;
  if (job.state === STATE.SCHEDULED && deadline !== null) {
    claims.hold(
      'noScheduleAtDeadline',
      job.startAt < deadline,
      () => `job ${job.id} starts at ${job.startAt}, deadline ${deadline}`,
    );
  }
  const before = step.before.get(job.id)?.job;
  if (before === undefined) return;
  if (before.state === STATE.UNCERTAIN) {
    const decided = facts.some((fact) => fact.type === 'reconciled');
    claims.hold(
      'uncertainRests',
      job.state === STATE.UNCERTAIN || decided,
      () => `job ${job.id} went to state ${job.state}`,
    );
  }
  if (before.cancelRequested) {
    const sticks = job.cancelRequested && !stateAwaitsWorker(job.state);
    claims.hold('cancelSticks', sticks, () => `job ${job.id} stands in state ${job.state}`);
  }
  claims.hold('capability', before.idempotent || !job.idempotent, () => `job ${job.id} became idempotent`);
}

function auditLaneStart(step: Step, job: Job, memory: Memory, claims: Claims): void {
  const lane = laneOf(job.submission.queue, job.submission.orderingKey);
  if (lane === null) return;
  const newest = memory.started.get(lane) ?? 0;
  claims.hold(
    'laneOrder',
    job.id >= newest,
    () => `job ${job.id} of lane ${lane} started after job ${newest}`,
  );
  memory.started.set(lane, job.id);
  for (const { job: other } of step.after.values()) {
    const older = other.id < job.id && laneOf(other.submission.queue, other.submission.orderingKey) === lane;
    claims.hold(
      'laneOrder',
      !older || stateIsTerminal(other.state),
      () => `job ${job.id} started while job ${other.id} of lane ${lane} is unresolved`,
    );
  }
}

function auditLanes(step: Step, claims: Claims): void {
  const busy = new Map<string, number>();
  for (const { job } of step.after.values()) {
    const lane = laneOf(job.submission.queue, job.submission.orderingKey);
    if (lane === null || !stateHoldsLease(job.state)) continue;
    claims.hold('oneInLane', !busy.has(lane), () => `jobs ${busy.get(lane)} and ${job.id} of lane ${lane}`);
    busy.set(lane, job.id);
  }
}
