/** Jobs in every state, each brought there by `decide` itself, and the commands to move them, for tests of the core. */
import { expect } from 'vitest';
import type {
  BeginStepCommand,
  CancelCommand,
  ClaimCommand,
  Command,
  CommitEffectCommand,
  Context,
  FinishStepCommand,
  PromoteCommand,
  ReconcileCommand,
  SettleCommand,
} from '../../src/core/commands.ts';
import { type Accepted, decide, type Refused } from '../../src/core/decide.ts';
import type { Fact } from '../../src/core/facts.ts';
import { initialJob, type Job, type Outcome, type Submission } from '../../src/core/job.ts';
import { lapse } from '../../src/core/lapse.ts';
import type { Refusal } from '../../src/core/refusal.ts';
import { STATE_NAMES, type State } from '../../src/core/states.ts';

/** When jobs are admitted, and when those that were claimed were claimed. */
export const T0 = 1_000;
/** Length of every lease, and its end when it was never extended. */
export const LEASE = 100;
export const LEASE_END: number = T0 + LEASE;
/** The token under which every job that was claimed is or was held. */
export const TOKEN = 7;

const DIGESTS = { payloadDigest: 'a'.repeat(64), descriptor: 'b'.repeat(64) } as const;

export function submissionOf(changes: Partial<Submission> = {}): Submission {
  return {
    kind: 'charge-card',
    revision: 2,
    queue: 'default',
    orderingKey: null,
    ...DIGESTS,
    idempotencyKey: null,
    requestId: null,
    lineage: 'lineage-1',
    admittedAt: T0,
    startAt: T0,
    deadline: null,
    priority: 0,
    idempotent: true,
    maxAttempts: 3,
    maxDeliveries: 1_003,
    backoffBaseMs: 10,
    backoffMaxMs: 80,
    reconcileAfterMs: 30,
    acceptLateReports: true,
    reconciles: false,
    compensates: false,
    requiresEffect: null,
    recurrence: null,
    internal: null,
    inherited: null,
    ...changes,
  };
}

/** A context in which nothing stands in the way. */
export function contextOf(changes: Partial<Context> = {}): Context {
  return {
    laneHead: true,
    queuePaused: false,
    claimer: { revision: 2, idempotent: true },
    effect: null,
    ...changes,
  };
}

export const claim = (changes: Partial<ClaimCommand> = {}): ClaimCommand => ({
  type: 'claim',
  token: TOKEN,
  worker: 'worker-1',
  leaseMs: LEASE,
  ...changes,
});

export const begin = (token: number = TOKEN): Command => ({ type: 'begin', token });

export const extend = (extendMs: number = LEASE, token: number = TOKEN): Command => ({
  type: 'extend',
  token,
  extendMs,
});

export const settle = (outcome: Outcome, changes: Partial<SettleCommand> = {}): SettleCommand => ({
  type: 'settle',
  token: TOKEN,
  worker: 'worker-1',
  outcome,
  digest: 'c'.repeat(64),
  delayMs: null,
  jitterMs: 0,
  until: null,
  neverCalled: false,
  byUpgrade: false,
  ...changes,
});

const OPERATOR = { actor: 'alice', reason: null, version: null } as const;

export const cancel = (changes: Partial<CancelCommand> = {}): CancelCommand => ({
  type: 'cancel',
  ...OPERATOR,
  ...changes,
});

export const promote = (changes: Partial<PromoteCommand> = {}): PromoteCommand => ({
  type: 'promote',
  ...OPERATOR,
  ...changes,
});

export const reconcile = (
  decision: ReconcileCommand['decision'],
  changes: Partial<ReconcileCommand> = {},
): ReconcileCommand => ({
  type: 'reconcile',
  token: TOKEN,
  decision,
  by: 'person',
  steps: [],
  ...OPERATOR,
  ...changes,
});

export const commitEffect = (
  key: string,
  changes: Partial<CommitEffectCommand> = {},
): CommitEffectCommand => ({
  type: 'commit_effect',
  token: TOKEN,
  key,
  descriptor: 'd'.repeat(64),
  result: 'e'.repeat(64),
  ...changes,
});

export const beginStep = (
  key: string,
  idempotent: boolean,
  changes: Partial<BeginStepCommand> = {},
): BeginStepCommand => ({
  type: 'begin_step',
  token: TOKEN,
  key,
  descriptor: 'd'.repeat(64),
  idempotent,
  ...changes,
});

export const finishStep = (key: string, changes: Partial<FinishStepCommand> = {}): FinishStepCommand => ({
  type: 'finish_step',
  token: TOKEN,
  key,
  result: 'e'.repeat(64),
  ...changes,
});

/** Decides a command that must be accepted, and must not have been a duplicate. */
export function accept(
  job: Job,
  command: Command,
  now: number = T0,
  context: Context = contextOf(),
): Accepted {
  const decision = decide(job, command, context, now);
  if (!decision.accepted) throw new Error(`${command.type} was refused: ${decision.refused}`);
  if (decision.duplicate) throw new Error(`${command.type} changed nothing: it was done before`);
  return decision;
}

/** Decides commands one after the other at one tick, all of which must be accepted. */
export function acceptAll(job: Job, commands: readonly Command[], now: number = T0): Job {
  return commands.reduce((current, command) => accept(current, command, now).job, job);
}

/** PENDING, or SCHEDULED when it starts later. */
export function waiting(changes: Partial<Submission> = {}): Job {
  return initialJob(1, submissionOf(changes));
}

/** LEASED since T0. */
export function leased(changes: Partial<Submission> = {}): Job {
  return accept(waiting(changes), claim()).job;
}

/** RUNNING since T0. */
export function running(changes: Partial<Submission> = {}): Job {
  return accept(leased(changes), begin()).job;
}

/** UNCERTAIN since its lease ended: an attempt of a job that is not idempotent was lost while it ran. */
export function lost(changes: Partial<Submission> = {}): Job {
  return lapse(running({ idempotent: false, ...changes }), LEASE_END).job;
}

/** UNCERTAIN and idempotent, with attempts left: its retry was asked for past the deadline, so no policy decided it. */
export function doubtful(changes: Partial<Submission> = {}): Job {
  const job = running({ deadline: T0 + 1_000, ...changes });
  return accept(job, settle('uncertain', { delayMs: 1_000 })).job;
}

/** The command is accepted and leaves the job in this state for this cause; returns the decision. */
export function expectMove(
  job: Job,
  command: Command,
  to: State,
  cause: Job['cause'],
  now: number = T0,
  context: Context = contextOf(),
): Accepted {
  const decision = accept(job, command, now, context);
  const after = decision.job;
  expect([STATE_NAMES[after.state], after.cause]).toEqual([STATE_NAMES[to], cause]);
  expect(decision.facts.at(-1)?.to).toBe(to);
  return decision;
}

/** The command is refused for this reason and leaves nothing but the lapse; returns the refusal. */
export function expectRefusal(
  job: Job,
  command: Command,
  refused: Refusal,
  now: number = T0,
  context: Context = contextOf(),
): Refused {
  const decision = decide(job, command, context, now);
  if (decision.accepted) throw new Error(`${command.type} was accepted, not refused as ${refused}`);
  expect(decision.refused).toBe(refused);
  const lapsed = lapse(job, now);
  expect(decision.job).toEqual(lapsed.job);
  expect(decision.facts).toEqual(lapsed.facts);
  return decision;
}

/** The command is accepted as one that took effect before, and changes nothing. */
export function expectDuplicate(
  job: Job,
  command: Command,
  now: number = T0,
  context: Context = contextOf(),
): void {
  const decision = decide(job, command, context, now);
  expect(decision).toMatchObject({ accepted: true, duplicate: true });
  expect(decision.job).toEqual(lapse(job, now).job);
}

/** The one fact of a type among facts. */
export function factOf<Type extends Fact['type']>(
  facts: readonly Fact[],
  type: Type,
): Extract<Fact, { type: Type }> {
  const found = facts.filter((fact): fact is Extract<Fact, { type: Type }> => fact.type === type);
  const [only] = found;
  if (only === undefined || found.length > 1) throw new Error(`${found.length} facts of type ${type}`);
  return only;
}
