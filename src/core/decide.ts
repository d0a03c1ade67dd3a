/** The one function that changes a job: it lapses it, then accepts or refuses the command, and says what to record. */
import { cancelIsLegal } from './cancellation.ts';
import type {
  BeginCommand,
  BeginStepCommand,
  CancelCommand,
  ClaimCommand,
  Command,
  CommitEffectCommand,
  Context,
  ExtendCommand,
  FinishStepCommand,
  PromoteCommand,
  SettleCommand,
} from './commands.ts';
import { type Ask, consequencesOf } from './consequences.ts';
import type { Fact, TestimonyFact } from './facts.ts';
import type { Job, Lease, OpenStep } from './job.ts';
import { lapse } from './lapse.ts';
import { beginExecutionIsLegal, claimIsLegal, completionIsLegal, heartbeatIsLegal } from './lease.ts';
import { limits } from './limits.ts';
import { reconcile, reconcileByLateReport } from './reconcile.ts';
import type { Refusal } from './refusal.ts';
import { revisionIsKnown } from './revision.ts';
import { recurrenceOverflows, scheduleIsDue } from './schedule.ts';
import { settle } from './settle.ts';
import { STATE, stateAwaitsWorker, stateIsTerminal } from './states.ts';
import { addTicks, isTick } from './ticks.ts';
import { land } from './transition.ts';

/** The command took effect, or (`duplicate`) had taken effect before and changed nothing now. */
export interface Accepted {
  readonly accepted: true;
  readonly duplicate: boolean;
  readonly job: Job;
  /** To record in this order; a lapse that came first is among them. */
  readonly facts: readonly Fact[];
  readonly asks: readonly Ask[];
}

/** The command did not take effect. `job` and `facts` hold the lapse, and a late report that counted, all the same. */
export interface Refused {
  readonly accepted: false;
  readonly refused: Refusal;
  readonly job: Job;
  readonly facts: readonly Fact[];
  readonly asks: readonly Ask[];
  /** A settlement refused here that must be kept beside the chain, since it says nothing about the current attempt. */
  readonly testimony: boolean;
}

export type Decision = Accepted | Refused;

interface Applied {
  readonly job: Job;
  readonly facts: readonly Fact[];
}

/** Nothing changes because it was done before. */
const DUPLICATE = 'duplicate';
type Verdict = Applied | Refusal | typeof DUPLICATE;

/**
 * Decides a command on a job at `now`. Pure: the same arguments give the same decision, which is what makes the ledger
 * replayable. The job in the answer is stored when `facts` is not empty or the command was accepted; a refused command
 * leaves the job equal to its lapsed self, but for a late report that counted as a reconciliation.
 *
 * @example
 * ```ts
 * const decision = decide(job, { type: 'begin', token: 12 }, context, now);
 * if (!decision.accepted) console.warn(decision.refused);
 * ```
 */
export function decide(before: Job, command: Command, context: Context, now: number): Decision {
  if (!isTick(now)) return refuse('tick_overflow', { job: before, facts: [] }, before, now, false);
  const lapsed = lapse(before, now);
  const verdict = judge(lapsed.job, command, context, now);
  if (verdict === DUPLICATE) {
    const asks = consequencesOf(before, lapsed.job, now);
    return { accepted: true, duplicate: true, job: lapsed.job, facts: lapsed.facts, asks };
  }
  if (typeof verdict === 'string') {
    if (command.type === 'settle') return refuseSettlement(verdict, command, before, lapsed, now);
    return refuse(verdict, lapsed, before, now, false);
  }
  const asks = consequencesOf(before, verdict.job, now);
  return {
    accepted: true,
    duplicate: false,
    job: verdict.job,
    facts: [...lapsed.facts, ...verdict.facts],
    asks,
  };
}

function refuse(refused: Refusal, left: Applied, before: Job, now: number, testimony: boolean): Refused {
  const asks = consequencesOf(before, left.job, now);
  return { accepted: false, refused, job: left.job, facts: left.facts, asks, testimony };
}

function judge(job: Job, command: Command, context: Context, now: number): Verdict {
  switch (command.type) {
    case 'claim':
      return claim(job, command, context, now);
    case 'cancel':
      return cancel(job, command, now);
    case 'promote':
      return promote(job, command, now);
    case 'reconcile':
      return reconcile(job, command, now);
    default:
      return judgeHolder(job, command, context, now);
  }
}

type HolderCommand =
  | BeginCommand
  | ExtendCommand
  | CommitEffectCommand
  | BeginStepCommand
  | FinishStepCommand
  | SettleCommand;

/**
 * The lease a token holds on this lapsed job, or why it holds none. Tokens come first: who does not hold the job learns
 * that before anything is said about its state.
 */
export function custodyOf(job: Job, token: number): Lease | 'stale_token' | 'already_settled' | 'lease_lost' {
  if (token !== job.token || token === 0) return 'stale_token';
  if (job.answered?.token === token) return 'already_settled';
  return job.lease ?? 'lease_lost';
}

function judgeHolder(job: Job, command: HolderCommand, context: Context, now: number): Verdict {
  const lease = custodyOf(job, command.token);
  if (lease === 'already_settled' && command.type === 'settle') {
    const again = job.answered?.outcome === command.outcome && job.answered.digest === command.digest;
    return again ? DUPLICATE : lease;
  }
  if (typeof lease === 'string') return lease;
  switch (command.type) {
    case 'begin':
      return begin(job, lease, context, now);
    case 'extend':
      return extend(job, lease, command, now);
    case 'settle':
      return settle(job, lease, command, now);
    default:
      if (!completionIsLegal(job.state, command.token, job.token, now, lease.expiresAt)) return 'wrong_state';
      return mark(job, lease, command, context, now);
  }
}

function claim(job: Job, command: ClaimCommand, context: Context, now: number): Verdict {
  if (command.token <= job.token) return 'stale_token';
  if (stateIsTerminal(job.state)) return 'terminal';
  if (!stateAwaitsWorker(job.state)) return 'wrong_state';
  if (!claimIsLegal(job.state, scheduleIsDue(now, job.startAt))) return 'not_due';
  if (!context.laneHead) return 'lane_blocked';
  if (context.queuePaused && job.submission.internal === null) return 'queue_paused';
  if (context.claimer === null) return 'kind_unknown';
  if (!revisionIsKnown(job.submission.revision, context.claimer.revision)) return 'revision_unknown';
  const expiresAt = leaseEnd(now, command.leaseMs);
  if (expiresAt === 'tick_overflow' || !isTick(command.token) || nextSlotOverflows(job, now))
    return 'tick_overflow';
  const { token, worker } = command;
  // An internal job belongs to Custody: the contract of its parent's kind does not make it unsafe to ask again.
  const idempotent = job.idempotent && (context.claimer.idempotent || job.submission.internal !== null);
  const delivery = job.delivery + 1;
  const claimed: Job = {
    ...job,
    state: STATE.LEASED,
    version: job.version + 1,
    tick: now,
    token,
    delivery,
    idempotent,
    marked: false,
    lease: { token, worker, expiresAt, lengthMs: command.leaseMs },
  };
  const to = STATE.LEASED;
  return {
    job: claimed,
    facts: [{ type: 'claimed', tick: now, expiresAt, worker, token, delivery, idempotent, to }],
  };
}

/** Overflow in the arithmetic of a recurrence is refused before the handler is dispatched. */
function nextSlotOverflows(job: Job, now: number): boolean {
  const recurrence = job.submission.recurrence;
  return recurrence !== null && recurrenceOverflows(job.slotAt ?? 0, recurrence.intervalMs, now);
}

function leaseEnd(now: number, lengthMs: number): number | 'tick_overflow' {
  if (!isTick(lengthMs) || lengthMs < limits.leaseMsMin || lengthMs > limits.leaseMsMax)
    return 'tick_overflow';
  return addTicks(now, lengthMs);
}

function begin(job: Job, lease: Lease, context: Context, now: number): Verdict {
  if (!beginExecutionIsLegal(job.state, lease.token, job.token, now, lease.expiresAt)) return 'wrong_state';
  if (context.queuePaused && job.submission.internal === null) return 'queue_paused';
  const attempt = job.attempt + 1;
  const { worker, token, expiresAt } = lease;
  const to = STATE.RUNNING;
  return {
    job: { ...job, state: to, version: job.version + 1, tick: now, attempt, runs: job.runs + 1 },
    facts: [{ type: 'begun', tick: now, expiresAt, worker, token, attempt, to }],
  };
}

/** From now, not from the old expiry; a renewal is no fact of its own, so neither version nor tick move. */
function extend(job: Job, lease: Lease, command: ExtendCommand, now: number): Verdict {
  if (!heartbeatIsLegal(job.state, lease.token, job.token, now, lease.expiresAt)) return 'wrong_state';
  const expiresAt = leaseEnd(now, command.extendMs);
  if (expiresAt === 'tick_overflow') return expiresAt;
  return { job: { ...job, lease: { ...lease, expiresAt, lengthMs: command.extendMs } }, facts: [] };
}

/** Effects and steps: a key belongs to one content, and the same content again is a duplicate. */
function mark(
  job: Job,
  lease: Lease,
  command: CommitEffectCommand | BeginStepCommand | FinishStepCommand,
  context: Context,
  now: number,
): Verdict {
  const { worker, token, expiresAt } = lease;
  const held = { tick: now, expiresAt, worker, token, to: job.state } as const;
  const next = { ...job, version: job.version + 1, tick: now, marked: true };
  if (command.type === 'finish_step') {
    if (!job.openSteps.some((step) => step.key === command.key)) {
      return context.effect?.result === command.result ? DUPLICATE : 'effect_conflict';
    }
    const openSteps = withoutStep(job.openSteps, command.key);
    const { key, result } = command;
    return { job: { ...next, openSteps }, facts: [{ type: 'step_done', ...held, key, result }] };
  }
  const { key, descriptor } = command;
  if (context.effect !== null && context.effect.descriptor !== descriptor) return 'effect_conflict';
  const open = job.openSteps.find((step) => step.key === key);
  if (command.type === 'commit_effect') {
    if (open !== undefined) return 'effect_conflict';
    if (context.effect !== null) return DUPLICATE;
    const requiredEffectCommitted = job.requiredEffectCommitted || key === job.submission.requiresEffect;
    const { result } = command;
    return {
      job: { ...next, requiredEffectCommitted },
      facts: [{ type: 'effect_committed', ...held, key, descriptor, result }],
    };
  }
  if (open === undefined && context.effect !== null) return DUPLICATE;
  if (open !== undefined && !(open.idempotent && command.idempotent)) return 'step_open';
  if (open === undefined && job.openSteps.length >= limits.openStepsMax) return 'step_open';
  const { idempotent } = command;
  const openSteps = [...withoutStep(job.openSteps, key), { key, idempotent }];
  return {
    job: { ...next, openSteps },
    facts: [{ type: 'step_begun', ...held, key, descriptor, idempotent }],
  };
}

function withoutStep(steps: readonly OpenStep[], key: string): readonly OpenStep[] {
  return steps.filter((step) => step.key !== key);
}

function cancel(job: Job, command: CancelCommand, now: number): Verdict {
  if (command.version !== null && command.version !== job.version) return 'version_mismatch';
  if (stateIsTerminal(job.state)) return 'terminal';
  if (job.cancelRequested) return DUPLICATE;
  const { actor, reason } = command;
  const expiresAt = job.lease?.expiresAt ?? null;
  if (cancelIsLegal(job.state)) {
    const to = STATE.CANCELLED;
    return {
      job: land(job, now, { to, cause: 'cancelled', startAt: null }),
      facts: [{ type: 'cancel', tick: now, expiresAt, actor, reason, to }],
    };
  }
  return {
    job: { ...job, version: job.version + 1, tick: now, cancelRequested: true },
    facts: [{ type: 'cancel', tick: now, expiresAt, actor, reason, to: job.state }],
  };
}

function promote(job: Job, command: PromoteCommand, now: number): Verdict {
  if (command.version !== null && command.version !== job.version) return 'version_mismatch';
  if (stateIsTerminal(job.state)) return 'terminal';
  if (job.state !== STATE.SCHEDULED) return 'wrong_state';
  const { actor, reason } = command;
  return {
    job: { ...job, version: job.version + 1, tick: now, startAt: now },
    facts: [{ type: 'promoted', tick: now, expiresAt: null, actor, reason, to: job.state }],
  };
}

/**
 * A settlement that came too late is never lost: about an UNCERTAIN attempt it becomes an entry of the chain and may
 * count as its reconciliation; about anything else it is kept beside the chain, where it cannot disturb the holder.
 */
function refuseSettlement(
  refused: Refusal,
  command: SettleCommand,
  before: Job,
  lapsed: Applied,
  now: number,
): Refused {
  const job = lapsed.job;
  const late = refused === 'stale_token' || refused === 'lease_lost' || refused === 'already_settled';
  const wasGranted = isTick(command.token) && command.token > 0 && command.token <= job.token;
  if (!late || !wasGranted) return refuse(refused, lapsed, before, now, false);
  if (job.state !== STATE.UNCERTAIN || command.token !== job.token) {
    return refuse(refused, lapsed, before, now, true);
  }
  const { token, worker, outcome, digest } = command;
  const repeated = job.testified?.outcome === outcome && job.testified.digest === digest;
  const definite = outcome === 'succeeded' || outcome === 'permanent';
  // Noise must not crowd out the word that could decide.
  const bound = definite ? limits.testimonyPerJobMax : limits.testimonyIndefiniteMax;
  if (repeated || job.testimonies >= bound) return refuse(refused, lapsed, before, now, false);
  const fact: TestimonyFact = {
    type: 'testimony',
    tick: now,
    expiresAt: null,
    worker,
    token,
    outcome,
    digest,
    to: job.state,
  };
  const heard: Job = {
    ...job,
    version: job.version + 1,
    tick: now,
    testified: { token, outcome, digest },
    testimonies: job.testimonies + 1,
  };
  const counted = reconcileByLateReport(heard, command, now);
  const left: Applied =
    counted === null
      ? { job: heard, facts: [...lapsed.facts, fact] }
      : { job: counted.job, facts: [...lapsed.facts, fact, ...counted.facts] };
  return refuse(refused, left, before, now, false);
}
