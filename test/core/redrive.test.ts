/** Redrive: a job that ended badly is made again once, as a new job that knows what already took place. */
import { describe, expect, test } from 'vitest';
import { initialJob, type Job, type Submission } from '../../src/core/job.ts';
import { lapse } from '../../src/core/lapse.ts';
import { limits } from '../../src/core/limits.ts';
import { decideRedrive, type RedriveCommand, type RedriveContext } from '../../src/core/redrive.ts';
import { STATE } from '../../src/core/states.ts';
import {
  accept,
  acceptAll,
  begin,
  beginStep,
  cancel,
  claim,
  commitEffect,
  contextOf,
  expectMove,
  expectRefusal,
  LEASE_END,
  lost,
  reconcile,
  running,
  settle,
  T0,
  waiting,
} from '../support/job-builders.ts';

const NOW = T0 + 500;

function redrive(job: Job, command: Partial<RedriveCommand> = {}, context: Partial<RedriveContext> = {}) {
  return decideRedrive(
    job,
    { deadline: null, version: null, ...command },
    {
      now: NOW,
      unresolved: 0,
      maxUnresolved: null,
      freshLineage: 'lineage-9',
      redrivenTo: null,
      compensation: 'none',
      ...context,
    },
  );
}

function again(
  job: Job,
  command: Partial<RedriveCommand> = {},
  context: Partial<RedriveContext> = {},
): Submission {
  const decision = redrive(job, command, context);
  if ('refused' in decision) throw new Error(decision.refused);
  return decision.submission;
}

const failed = (changes: Partial<Submission> = {}) => accept(running(changes), settle('permanent')).job;

describe('a new job', () => {
  test('keeps payload, policy and lineage, and starts now, without key, request or the old deadline', () => {
    const old = failed({
      idempotencyKey: 'invoice-17',
      requestId: 'request-1',
      orderingKey: 'bob',
      deadline: T0 + 200,
      startAt: T0,
    });
    expect(again(old)).toEqual({
      ...old.submission,
      idempotencyKey: null,
      requestId: null,
      deadline: null,
      admittedAt: NOW,
      startAt: NOW,
      inherited: { fromId: 1, occurrence: 0, requiredEffectCommitted: false, openSteps: [] },
    });
    expect(again(old, { deadline: NOW + 1 }).deadline).toBe(NOW + 1);
  });

  test('comes of each bad end and of no other', () => {
    const dead = accept(running({ maxAttempts: 1 }), settle('retryable')).job;
    for (const job of [
      failed(),
      dead,
      accept(waiting(), cancel()).job,
      lapse(running({ maxAttempts: 1 }), LEASE_END).job,
    ]) {
      expect(again(job).admittedAt).toBe(NOW);
    }
    for (const job of [waiting(), running(), lost(), accept(running(), settle('succeeded')).job]) {
      expect(redrive(job)).toEqual({ refused: 'wrong_state' });
    }
  });

  test('inherits what took place: the required effect is there before anything ran', () => {
    const old = acceptAll(running({ requiresEffect: 'charge' }), [
      commitEffect('charge'),
      settle('permanent'),
    ]);
    const job = initialJob(2, again(old));
    expect(job).toMatchObject({
      state: STATE.PENDING,
      requiredEffectCommitted: true,
      attempt: 0,
      token: 0,
      version: 0,
    });
    const held = acceptAll(job, [claim(), begin()], NOW);
    expectMove(held, settle('succeeded'), STATE.SUCCEEDED, 'reported', NOW);
  });

  test('inherits steps whose end is not known: an unsafe one is not begun again', () => {
    const old = acceptAll(running(), [beginStep('mail', false), settle('permanent')]);
    const held = acceptAll(initialJob(2, again(old)), [claim(), begin()], NOW);
    expectRefusal(held, beginStep('mail', false), 'step_open', NOW);
  });

  test('does not find a step open that the decision about the old job closed', () => {
    const doubt = lapse(acceptAll(running({ idempotent: false }), [beginStep('mail', false)]), LEASE_END).job;
    const verdict = { key: 'mail', tookPlace: false, result: null };
    const old = accept(doubt, reconcile('failed', { steps: [verdict] }), LEASE_END).job;
    const held = acceptAll(initialJob(2, again(old)), [claim(), begin()], NOW);
    expectMove(held, beginStep('mail', false), STATE.RUNNING, null, NOW);
  });

  test('stays unsafe when a worker had found it unsafe', () => {
    const unsafe = contextOf({ claimer: { revision: 2, idempotent: false } });
    const old = acceptAll(accept(waiting(), claim(), T0, unsafe).job, [begin(), settle('permanent')]);
    expect(old.submission.idempotent).toBe(true);
    expect(again(old).idempotent).toBe(false);
  });

  test('of a recurring job goes on at its occurrence, whose effect keys are its own', () => {
    const recurrence = { intervalMs: 100, maxOccurrences: 3, maxCatchUp: 2 };
    const slot = acceptAll(running({ recurrence }), [settle('succeeded')]);
    const old = acceptAll(slot, [claim({ token: 8 }), begin(8), settle('permanent', { token: 8 })], T0 + 100);
    const job = initialJob(2, again(old));
    expect(job).toMatchObject({ occurrence: 1, slotAt: NOW, startAt: NOW });
    const held = acceptAll(job, [claim(), begin()], NOW);
    const next = expectMove(held, settle('succeeded'), STATE.SCHEDULED, 'recurrence', NOW);
    expect(next.job).toMatchObject({ occurrence: 2, startAt: NOW + 100 });
  });
});

describe('the lineage', () => {
  const old = acceptAll(running({ requiresEffect: 'charge', compensates: true }), [
    commitEffect('charge'),
    beginStep('mail', false),
    settle('permanent'),
  ]);

  test('is new once the effect was undone, and what was undone has not taken place', () => {
    expect(again(old, {}, { compensation: 'succeeded' })).toMatchObject({
      lineage: 'lineage-9',
      inherited: { requiredEffectCommitted: false, openSteps: [] },
    });
  });

  test('is kept when the compensation failed: the effect stands', () => {
    expect(again(old, {}, { compensation: 'failed' })).toMatchObject({
      lineage: 'lineage-1',
      inherited: { requiredEffectCommitted: true, openSteps: [{ key: 'mail', idempotent: false }] },
    });
  });

  test('is not guessed while the compensation is under way', () => {
    expect(redrive(old, {}, { compensation: 'unresolved' })).toEqual({ refused: 'wrong_state' });
  });
});

describe('a redrive is refused', () => {
  test('a second time', () => {
    expect(redrive(failed(), {}, { redrivenTo: 2 })).toEqual({ refused: 'already_redriven' });
  });

  test('of an internal job', () => {
    const internal = { purpose: 'compensate', parentId: 3, parentToken: 5 } as const;
    expect(redrive(failed({ internal }))).toEqual({ refused: 'wrong_state' });
  });

  test('with a deadline that is reached, equality included', () => {
    for (const deadline of [0, NOW - 1, NOW]) {
      expect(redrive(failed(), { deadline })).toEqual({ refused: 'deadline_passed' });
    }
  });

  test('with a deadline, or by a clock, that is no tick', () => {
    for (const deadline of [NOW + 0.5, Number.NaN, Number.POSITIVE_INFINITY, limits.tickMax + 1]) {
      expect(redrive(failed(), { deadline })).toEqual({ refused: 'tick_overflow' });
    }
    expect(redrive(failed(), { deadline: -1 })).toEqual({ refused: 'deadline_passed' });
    expect(redrive(failed(), {}, { now: Number.NaN })).toEqual({ refused: 'tick_overflow' });
  });

  test('on an older view of the job, and at the bound of its queue', () => {
    const old = failed();
    expect(redrive(old, { version: old.version - 1 })).toEqual({ refused: 'version_mismatch' });
    expect(again(old, { version: old.version }).startAt).toBe(NOW);
    expect(redrive(old, {}, { unresolved: 3, maxUnresolved: 3 })).toEqual({ refused: 'capacity_exceeded' });
    expect(again(old, {}, { unresolved: 2, maxUnresolved: 3 }).startAt).toBe(NOW);
  });
});

test('the old job is not touched: terminal is final', () => {
  const old = failed();
  const before = structuredClone(old);
  again(old);
  expect(old).toEqual(before);
});
