/** Consequences: who must be asked, what must be undone and what a person must see, of each move and of no other. */
import { describe, expect, test } from 'vitest';
import type { Command } from '../../src/core/commands.ts';
import { consequencesOf, needsYou } from '../../src/core/consequences.ts';
import { decide } from '../../src/core/decide.ts';
import type { Job } from '../../src/core/job.ts';
import { lapse } from '../../src/core/lapse.ts';
import { limits } from '../../src/core/limits.ts';
import { STATE } from '../../src/core/states.ts';
import {
  accept,
  acceptAll,
  begin,
  cancel,
  claim,
  contextOf,
  doubtful,
  extend,
  LEASE_END,
  leased,
  lost,
  promote,
  reconcile,
  running,
  settle,
  T0,
  TOKEN,
  waiting,
} from '../support/job-builders.ts';

const asks = (job: Job, command: Command, now: number = T0) => decide(job, command, contextOf(), now).asks;
const askReconcile = (startAt: number) => ({ ask: 'enqueue_reconcile', token: TOKEN, startAt });
const askCompensate = (startAt: number) => ({ ask: 'enqueue_compensate', token: TOKEN, startAt });
const stopAsking = { ask: 'cancel_reconcile', token: TOKEN };
const LINK = { purpose: 'compensate', parentId: 3, parentToken: 5 } as const;

describe('the reconciler', () => {
  const reconciles = true;

  test('is asked about a doubt no earlier than its delay after it, whoever found the doubt', () => {
    const job = running({ reconciles, idempotent: false });
    expect(asks(job, settle('uncertain'), T0 + 5)).toEqual([askReconcile(T0 + 35)]);
    expect(asks(job, extend(), LEASE_END + 7)).toEqual([askReconcile(LEASE_END + 37)]);
    expect(asks(job, cancel(), LEASE_END)).toEqual([askReconcile(LEASE_END + 30)]);
  });

  test('is not asked when the definition has none, nor when the policy decided in the same commit', () => {
    expect(asks(running({ idempotent: false }), settle('uncertain'))).toEqual([]);
    expect(asks(running({ reconciles }), settle('uncertain'))).toEqual([]);
  });

  test('is not asked about a loss that a late report decided in the same commit', () => {
    expect(asks(running({ reconciles, idempotent: false }), settle('succeeded'), LEASE_END)).toEqual([]);
  });

  test('is asked although the report that found the loss said nothing definite', () => {
    const job = running({ reconciles, idempotent: false });
    expect(asks(job, settle('retryable'), LEASE_END)).toEqual([askReconcile(LEASE_END + 30)]);
  });

  test('is not asked again while the doubt lasts, and is stopped by whatever ends it', () => {
    const job = lost({ reconciles });
    expect(asks(job, cancel(), LEASE_END)).toEqual([]);
    expect(asks(job, settle('retryable'), LEASE_END)).toEqual([]);
    expect(asks(job, reconcile('retry'), LEASE_END)).toEqual([]);
    expect(asks(job, reconcile('succeeded'), LEASE_END)).toEqual([stopAsking]);
    expect(asks(job, reconcile('failed'), LEASE_END)).toEqual([stopAsking]);
    expect(asks(job, settle('succeeded'), LEASE_END)).toEqual([stopAsking]);
    expect(asks(doubtful({ reconciles }), reconcile('retry'))).toEqual([stopAsking]);
    expect(asks(lost(), reconcile('failed'), LEASE_END)).toEqual([]);
  });

  test('is asked about each attempt in doubt under its own token', () => {
    const again = acceptAll(doubtful({ reconciles }), [reconcile('retry'), claim({ token: 8 }), begin(8)]);
    const [ask] = asks(again, settle('uncertain', { token: 8, delayMs: 1_000 }));
    expect(ask).toEqual({ ...askReconcile(T0 + 30), token: 8 });
  });

  test('is not asked past the end of time: the job stays with a person', () => {
    const job = running({ reconciles, idempotent: false });
    const late = limits.tickMax - 30;
    expect(consequencesOf(job, lapse(job, late).job, late)).toEqual([askReconcile(limits.tickMax)]);
    expect(consequencesOf(job, lapse(job, late + 1).job, late + 1)).toEqual([]);
  });
});

describe('the compensation', () => {
  const compensates = true;

  test('is enqueued when a job that ever ran fails for good or is cancelled, in that very commit', () => {
    expect(asks(running({ compensates }), settle('permanent'), T0 + 3)).toEqual([askCompensate(T0 + 3)]);
    const retried = accept(running({ compensates }), settle('retryable')).job;
    expect(asks(retried, cancel(), T0 + 4)).toEqual([askCompensate(T0 + 4)]);
    const requested = accept(running({ compensates }), cancel()).job;
    expect(asks(requested, settle('snoozed', { until: T0 + 9 }))).toEqual([askCompensate(T0)]);
  });

  test('is not enqueued for a job that never ran, that succeeded, or that was buried', () => {
    expect(asks(waiting({ compensates }), cancel())).toEqual([]);
    expect(asks(leased({ compensates }), cancel())).toEqual([]);
    expect(asks(running({ compensates }), settle('refused'))).toEqual([]);
    expect(asks(running({ compensates }), settle('succeeded'))).toEqual([]);
    expect(asks(running({ compensates, maxAttempts: 1 }), settle('retryable'))).toEqual([]);
    const requested = accept(running({ compensates }), cancel()).job;
    expect(asks(requested, settle('interrupted', { neverCalled: true }))).toEqual([]);
    expect(asks(requested, settle('interrupted'))).toEqual([askCompensate(T0)]);
  });

  test('is not enqueued without a hook, nor twice', () => {
    expect(asks(running(), settle('permanent'))).toEqual([]);
    const failed = accept(running({ compensates }), settle('permanent')).job;
    expect(asks(failed, settle('permanent'))).toEqual([]);
    expect(asks(failed, cancel())).toEqual([]);
  });

  test('follows a decided failure after the question about it is stopped', () => {
    const job = lost({ reconciles: true, compensates });
    expect(asks(job, reconcile('failed'), LEASE_END)).toEqual([stopAsking, askCompensate(LEASE_END)]);
  });
});

describe('internal jobs', () => {
  test('have no internal jobs of their own, whatever becomes of them', () => {
    const changes = { internal: LINK, reconciles: true, compensates: true } as const;
    expect(asks(running(changes), settle('permanent'))).toEqual([]);
    expect(asks(running({ ...changes, idempotent: false }), settle('uncertain'))).toEqual([]);
    expect(asks(lost(changes), reconcile('failed'), LEASE_END)).toEqual([]);
  });
});

test('a command that moves nothing asks for nothing', () => {
  const changes = { reconciles: true, compensates: true, startAt: T0 + 9 };
  expect(asks(waiting(changes), promote())).toEqual([]);
  expect(asks(waiting(changes), claim())).toEqual([]);
  const job = lost({ reconciles: true });
  expect(consequencesOf(job, job, LEASE_END)).toEqual([]);
});

describe('what a person must see', () => {
  test('is every job in doubt, first of all', () => {
    expect(needsYou(lost())).toBe('uncertain');
    expect(needsYou(doubtful({ reconciles: true }))).toBe('uncertain');
  });

  test('is a job that ended while it ran and nobody knows what it did', () => {
    expect(needsYou(lapse(running({ maxAttempts: 1 }), LEASE_END).job)).toBe('outcome_unknown');
    const requested = accept(running({ compensates: true }), cancel()).job;
    expect(needsYou(lapse(requested, LEASE_END).job)).toBe('outcome_unknown');
  });

  test('is a compensation that is required and has no hook', () => {
    const failed = (changes: Parameters<typeof running>[0]) =>
      accept(running(changes), settle('permanent')).job;
    expect(needsYou(failed({}))).toBe('compensation_required');
    expect(needsYou(failed({ compensates: true }))).toBeNull();
    expect(needsYou(failed({ internal: LINK }))).toBeNull();
    expect(needsYou(accept(waiting(), cancel()).job)).toBeNull();
  });

  test('is a job stranded by an upgrade only while it waits, not while somebody runs it', () => {
    const stranded = accept(running(), settle('refused', { byUpgrade: true })).job;
    expect(needsYou(stranded)).toBe('stranded');
    const leasedAgain = accept(stranded, claim({ token: 8 }), stranded.startAt).job;
    expect([leasedAgain.cause, needsYou(leasedAgain)]).toEqual(['upgrade_refused', null]);
  });

  test('is nothing that goes its ordinary way', () => {
    const ordinary = [
      waiting(),
      leased(),
      running(),
      accept(running(), settle('succeeded')).job,
      accept(running(), settle('retryable')).job,
      accept(running({ maxAttempts: 1 }), settle('retryable')).job,
    ];
    expect(ordinary.map(needsYou)).toEqual([null, null, null, null, null, null]);
    expect(ordinary.at(-1)?.state).toBe(STATE.DEAD_LETTERED);
  });
});
