/** Checks one step after the other against everything that was seen before, and knows nothing but what was seen. */
import { isDeepStrictEqual } from 'node:util';
import { type Job, stateHoldsLease } from '../../src/core/index.ts';
import { verifyJob } from '../../src/evidence/index.ts';
import { balanceOf } from '../../src/testing/conformance/build.ts';
import { checkStore } from '../../src/testing/conformance/invariants.ts';
import { auditAdmission } from './audit-admission.ts';
import { auditCustody } from './audit-custody.ts';
import { auditEffects } from './audit-effects.ts';
import { auditFrame, difference, lapsedAt } from './audit-frame.ts';
import { auditInternal } from './audit-internal.ts';
import { auditSelection } from './audit-selection.ts';
import type { Claims } from './claims.ts';
import { Memory } from './memory-of-history.ts';
import type { Step } from './step.ts';
import type { World } from './world.ts';

const GAP = 2 ** 32;

export class Auditor {
  readonly #claims: Claims;
  readonly #memory = new Memory();

  constructor(claims: Claims) {
    this.#claims = claims;
  }

  check(step: Step, world: World): void {
    const claims = this.#claims;
    const memory = this.#memory;
    this.#settings(step);
    auditFrame(step, claims);
    auditCustody(step, memory, claims);
    auditEffects(step, memory, claims);
    auditAdmission(step, memory, claims);
    auditInternal(step, claims);
    auditSelection(step, memory, claims);
    auditAnswers(step, claims);
    auditMove(step, memory, claims);
    if (step.call.verb === 'move' && !world.backend.applicationMoves) memory.balance = null;
    for (const id of world.evidence.keys()) auditEvidence(step, world, id, claims);
  }

  /** Everything once more at the end, whoever moved it. */
  async end(world: World): Promise<void> {
    await this.#claims.attempt('reads', () => checkStore(world.store));
    const { balance } = this.#memory;
    if (balance === null || this.#memory.paused.size === 2) return;
    const seen = await balanceOf(world.opened);
    this.#claims.hold(
      'effectOnce',
      seen === balance,
      () => `the account has ${seen} applications, not ${balance}`,
    );
  }

  #settings({ call }: Step): void {
    if (call.verb === 'pause') this.#memory.paused.add(call.queue);
    if (call.verb === 'resume') this.#memory.paused.delete(call.queue);
    if (call.verb === 'configure') this.#memory.bounds.set(call.queue, call.bound);
  }
}

/** The stored job is the one its evidence leads to, and its evidence has only grown. */
function auditEvidence(step: Step, world: World, id: number, claims: Claims): void {
  const evidence = world.evidence.get(id);
  const job = step.after.get(id)?.job;
  if (evidence === undefined || job === undefined) return;
  const { ok, faults } = verifyJob(evidence);
  claims.hold('evidence', ok, () => `job ${id}: ${JSON.stringify(faults)}`);
  claims.hold('evidence', isDeepStrictEqual(evidence.job, job), () => difference(job, evidence.job));
  const facts = world.facts.get(id)?.length ?? 0;
  claims.hold(
    'historyGrows',
    facts === job.version,
    () => `job ${id} has version ${job.version} and ${facts} facts`,
  );
}

/** What verdicts say of the row, and what the verbs say of each other. */
function auditAnswers(step: Step, claims: Claims): void {
  const { call } = step;
  const shown = (job: Job | null): void => {
    if (job === null) return;
    const stored = step.after.get(job.id)?.job;
    claims.hold('verdictTellsTheRow', isDeepStrictEqual(job, stored), () => difference(job, stored ?? {}));
  };
  switch (call.verb) {
    case 'claim':
      for (const { job } of call.claimed) shown(job);
      return;
    case 'begin':
      for (const verdict of call.verdicts) shown(verdict.job);
      return;
    case 'settle': {
      const claimed = new Set(call.claimed.map(({ job }) => job.id));
      for (const { job } of call.claimed) shown(job);
      const last = call.verdicts.at(-1);
      if (last?.job != null && !claimed.has(last.job.id)) shown(last.job);
      auditRepetition(step, claims);
      return;
    }
    case 'extend':
      for (const index of call.verdicts.keys()) auditExtension(step, index, claims, shown);
      return;
    case 'transact':
      if (call.answer !== 'threw') shown(call.answer.job);
      return;
    case 'cancel':
    case 'promote':
    case 'dismiss':
      shown(call.verdict.job);
      return;
    case 'reconcile':
    case 'redrive':
      if (call.verb === 'reconcile' || call.request.dryRun !== true) shown(call.verdict.job);
      if (call.verdict.ok) shown(call.verdict.redriven);
      return;
    case 'garbage':
      claims.hold(
        'badInput',
        call.code === 'invalid_input',
        () => `${call.what} was answered with ${call.code}`,
      );
      claims.hold(
        'badInput',
        isDeepStrictEqual(step.after, step.before),
        () => `${call.what} changed something`,
      );
      return;
    case 'clock': {
      const held = call.reading < call.floor && call.floor - call.reading <= 5_000;
      const expected = held ? call.floor : call.reading;
      claims.hold(
        'clock',
        call.seen === expected,
        () => `the store's clock reads ${call.seen}, not ${expected}`,
      );
      return;
    }
    case 'lapse': {
      const overdue = [...step.after.values()]
        .filter(({ job }) => lapsedAt(step, job) !== job)
        .map(({ job }) => job.id);
      claims.hold(
        'othersAreLeftAlone',
        call.more === overdue.length > 0,
        () => `jobs ${overdue.join()} are overdue, and more is ${call.more}`,
      );
      return;
    }
    default:
      return;
  }
}

function auditRepetition(step: Step, claims: Claims): void {
  const { call } = step;
  if (call.verb !== 'settle') return;
  const [first, second] = call.verdicts;
  if (call.settlements.length < 2 || first === undefined || second === undefined || !first.ok) return;
  const known = second.ok && second.duplicate;
  claims.hold('repeatedSettlement', known, () => `the second time it was answered ${JSON.stringify(second)}`);
  claims.hold('repeatedSettlement', isDeepStrictEqual(first.job, second.job), () =>
    difference(first.job, second.job ?? {}),
  );
}

function auditExtension(step: Step, index: number, claims: Claims, shown: (job: Job | null) => void): void {
  if (step.call.verb !== 'extend') return;
  const verdict = step.call.verdicts[index];
  const asked = step.call.extensions[index];
  if (verdict === undefined || asked === undefined || verdict.status === 'busy') return;
  shown(verdict.job);
  if (verdict.status === 'lost') return;
  const before = step.before.get(asked.id)?.job;
  const expiresAt = step.now + asked.extendMs;
  const lease = before?.lease == null ? null : { ...before.lease, expiresAt, lengthMs: asked.extendMs };
  const right =
    verdict.expiresAt === expiresAt &&
    stateHoldsLease(verdict.job.state) &&
    isDeepStrictEqual(verdict.job, { ...before, lease });
  claims.hold('extension', right, () => difference({ ...verdict.job, lease }, verdict.job));
}

/** A restart or a copy shows the same jobs, and counts on from where nobody can have been. */
function auditMove(step: Step, memory: Memory, claims: Claims): void {
  if (step.call.verb !== 'move') return;
  const lost = [...step.before].filter(([id, view]) => {
    const now = step.after.get(id);
    return now !== view && !isDeepStrictEqual(now, view);
  });
  const same = step.after.size === step.before.size && lost.length === 0;
  claims.hold('moving', same, () => `jobs ${lost.map(([id]) => id).join()} differ after a ${step.call.verb}`);
  if (step.call.as !== 'copy') return;
  memory.tokenFloor = Math.max(memory.lastToken, memory.tokenFloor) + GAP;
  memory.idFloor = Math.max(memory.lastId, memory.idFloor) + GAP;
}
