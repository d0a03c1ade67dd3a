/** UNCERTAIN: how a job comes there by its holder's own word, and by whose decision it leaves. */
import { describe, expect, test } from 'vitest';
import { STATE } from '../../src/core/states.ts';
import {
  accept,
  acceptAll,
  begin,
  beginStep,
  cancel,
  claim,
  commitEffect,
  doubtful,
  expectDuplicate,
  expectMove,
  expectRefusal,
  factOf,
  LEASE_END,
  lost,
  reconcile,
  running,
  settle,
  T0,
  TOKEN,
  waiting,
} from '../support/job-builders.ts';

const took = (key: string) => ({ key, tookPlace: true, result: 'e'.repeat(64) });
const tookNot = (key: string) => ({ key, tookPlace: false, result: null });

describe('settled uncertain', () => {
  test('an attempt that must not run twice rests, however many attempts are left', () => {
    const { job, facts } = expectMove(
      running({ idempotent: false }),
      settle('uncertain'),
      STATE.UNCERTAIN,
      'reported',
    );
    expect(job).toMatchObject({ lease: null, endedAt: null, attempt: 1, version: 3 });
    expect(facts).toHaveLength(1);
  });

  test('where a retry is permitted, the doubt and the decision to retry are two facts of one commit', () => {
    const { job, facts } = expectMove(
      running(),
      settle('uncertain'),
      STATE.SCHEDULED,
      'policy_retry',
      T0 + 5,
    );
    expect(facts.map((fact) => [fact.type, fact.to])).toEqual([
      ['settled', STATE.UNCERTAIN],
      ['retry_decided', STATE.SCHEDULED],
    ]);
    expect(factOf(facts, 'retry_decided')).toMatchObject({
      token: TOKEN,
      tick: T0 + 5,
      expiresAt: null,
      startAt: T0 + 15,
    });
    expect(job).toMatchObject({ version: 4, startAt: T0 + 15, attempt: 1 });
    expectDuplicate(job, settle('uncertain'), T0 + 6);
  });

  test('a handler names the delay of a policy retry as it does of any retry', () => {
    expect(accept(running(), settle('uncertain', { delayMs: 3, jitterMs: 4 })).job.startAt).toBe(T0 + 7);
  });

  test('no policy decides a retry without attempts or deliveries left, on the deadline, or with an unsafe step open', () => {
    const rests = (job: Parameters<typeof accept>[0], command = settle('uncertain')) =>
      expectMove(job, command, STATE.UNCERTAIN, 'reported');
    rests(running({ maxAttempts: 1 }));
    rests(running({ maxDeliveries: 1 }));
    rests(running({ deadline: T0 + 10 }));
    rests(acceptAll(running(), [beginStep('mail', false)]));
    expectMove(running({ deadline: T0 + 11 }), settle('uncertain'), STATE.SCHEDULED, 'policy_retry');
    expectMove(running({ maxDeliveries: 2 }), settle('uncertain'), STATE.SCHEDULED, 'policy_retry');
    const safe = acceptAll(running(), [beginStep('mail', true)]);
    expectMove(safe, settle('uncertain'), STATE.SCHEDULED, 'policy_retry');
  });

  test('a requested cancellation makes a policy retry a cancellation', () => {
    const job = accept(running(), cancel()).job;
    const { facts } = expectMove(job, settle('uncertain'), STATE.CANCELLED, 'cancelled');
    expect(facts.map((fact) => fact.to)).toEqual([STATE.UNCERTAIN, STATE.CANCELLED]);
  });
});

describe('reconcile', () => {
  test('succeeded and failed end the job, and the record says who decided about which attempt and why', () => {
    const reason = 'a'.repeat(64);
    const by = { by: 'reconciler', actor: 'ledger', reason } as const;
    const { job, facts } = expectMove(
      lost(),
      reconcile('succeeded', by),
      STATE.SUCCEEDED,
      'reconciled',
      LEASE_END + 1,
    );
    expect(job).toMatchObject({ endedAt: LEASE_END + 1, version: 4, outcomeUnknown: false });
    const decided = {
      token: TOKEN,
      decision: 'succeeded',
      by: 'reconciler',
      actor: 'ledger',
      reason,
      steps: [],
    };
    const recorded = { type: 'reconciled', tick: LEASE_END + 1, expiresAt: null, startAt: null };
    expect(facts).toEqual([{ ...recorded, ...decided, cause: 'reconciled', to: STATE.SUCCEEDED }]);
    expectMove(lost(), reconcile('failed'), STATE.PERMANENT_FAILURE, 'reconciled', LEASE_END);
  });

  test('a permitted retry waits from now on, with the attempts it had', () => {
    const { job } = expectMove(doubtful(), reconcile('retry'), STATE.PENDING, 'reconciled', T0 + 500);
    expect(job).toMatchObject({ startAt: T0 + 500, attempt: 1, runs: 1, delivery: 1 });
  });

  test('a retry that is not permitted leaves the job UNCERTAIN', () => {
    expectRefusal(lost(), reconcile('retry'), 'retry_not_permitted', LEASE_END);
    expectRefusal(doubtful({ maxAttempts: 1 }), reconcile('retry'), 'retry_not_permitted');
    expectRefusal(doubtful({ maxDeliveries: 1 }), reconcile('retry'), 'retry_not_permitted');
  });

  test('nobody decides a retry on the deadline, while success and failure may still be decided', () => {
    const deadline = T0 + 1_000;
    expectMove(doubtful(), reconcile('retry'), STATE.PENDING, 'reconciled', deadline - 1);
    expectRefusal(doubtful(), reconcile('retry'), 'deadline_passed', deadline);
    expectMove(doubtful(), reconcile('succeeded'), STATE.SUCCEEDED, 'reconciled', deadline);
    expectMove(doubtful(), reconcile('failed'), STATE.PERMANENT_FAILURE, 'reconciled', deadline);
  });

  test('only an UNCERTAIN job is decided', () => {
    expectRefusal(running(), reconcile('succeeded'), 'wrong_state');
    expectRefusal(accept(running(), settle('permanent')).job, reconcile('succeeded'), 'terminal');
    expectRefusal(
      accept(lost(), reconcile('failed'), LEASE_END).job,
      reconcile('succeeded'),
      'terminal',
      LEASE_END,
    );
  });

  test('a decision names the attempt it is about: one about an earlier attempt decides nothing of the last', () => {
    const again = acceptAll(doubtful(), [reconcile('retry'), claim({ token: TOKEN + 1 }), begin(TOKEN + 1)]);
    const doubtfulAgain = accept(again, settle('uncertain', { token: TOKEN + 1, delayMs: 1_000 })).job;
    expect(doubtfulAgain.state).toBe(STATE.UNCERTAIN);
    expectRefusal(doubtfulAgain, reconcile('failed'), 'stale_token');
    expectMove(
      doubtfulAgain,
      reconcile('failed', { token: TOKEN + 1 }),
      STATE.PERMANENT_FAILURE,
      'reconciled',
    );
  });

  test('a decision made on an older view of the job is refused', () => {
    const job = lost();
    expectRefusal(job, reconcile('failed', { version: job.version - 1 }), 'version_mismatch', LEASE_END);
    accept(job, reconcile('failed', { version: job.version }), LEASE_END);
  });

  test('nobody decides that a job succeeded whose required effect never committed', () => {
    expectRefusal(
      lost({ requiresEffect: 'charge' }),
      reconcile('succeeded'),
      'effect_not_committed',
      LEASE_END,
    );
    const committed = accept(
      running({ requiresEffect: 'charge', deadline: T0 + 100 }),
      commitEffect('charge'),
    ).job;
    const doubt = accept(committed, settle('uncertain', { delayMs: 100 })).job;
    expectMove(doubt, reconcile('succeeded'), STATE.SUCCEEDED, 'reconciled');
  });

  test('a requested cancellation makes a decided retry a cancellation, and changes no other decision', () => {
    const job = accept(doubtful(), cancel()).job;
    expectMove(job, reconcile('retry'), STATE.CANCELLED, 'cancelled');
    expectMove(job, reconcile('succeeded'), STATE.SUCCEEDED, 'reconciled');
    expectMove(job, reconcile('failed'), STATE.PERMANENT_FAILURE, 'reconciled');
  });
});

describe('open steps', () => {
  const doubt = (idempotent: boolean) => {
    const job = acceptAll(running({ deadline: T0 + 1_000 }), [
      beginStep('mail', idempotent),
      beginStep('sms', true),
    ]);
    return accept(job, settle('uncertain', { delayMs: 1_000 })).job;
  };

  test('a retry says of each unsafe open step whether it took place, or is refused', () => {
    expectRefusal(doubt(false), reconcile('retry'), 'step_open');
    expectRefusal(doubt(false), reconcile('retry', { steps: [took('sms')] }), 'step_open');
    const { job, facts } = accept(doubt(false), reconcile('retry', { steps: [tookNot('mail')] }));
    expect(job.openSteps).toEqual([{ key: 'sms', idempotent: true }]);
    expect(factOf(facts, 'reconciled').steps).toEqual([tookNot('mail')]);
    expect(accept(doubt(true), reconcile('retry')).job.openSteps).toHaveLength(2);
  });

  test('whatever is decided, a verdict on a step that is not open, or two on one step, is refused', () => {
    for (const decision of ['succeeded', 'failed', 'retry'] as const) {
      expectRefusal(doubt(true), reconcile(decision, { steps: [took('fax')] }), 'effect_conflict');
      const twice = [took('mail'), tookNot('mail')];
      expectRefusal(doubt(true), reconcile(decision, { steps: twice }), 'effect_conflict');
    }
  });

  test('a verdict closes its step whatever is decided, so that a redriven job does not find it open', () => {
    const { job } = accept(doubt(false), reconcile('failed', { steps: [took('mail'), tookNot('sms')] }));
    expect(job).toMatchObject({ state: STATE.PERMANENT_FAILURE, openSteps: [] });
  });
});

test('a job in doubt that was never claimed is none: reconcile finds it in the wrong state', () => {
  expectRefusal(waiting(), reconcile('failed', { token: 0 }), 'wrong_state');
  expectRefusal(waiting(), reconcile('failed'), 'stale_token');
});
