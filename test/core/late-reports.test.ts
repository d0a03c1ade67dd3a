/** Late reports: what comes too late to settle is never lost, never disturbs a holder, and decides only what is in doubt. */
import { describe, expect, test } from 'vitest';
import type { SettleCommand } from '../../src/core/commands.ts';
import { type Decision, decide, type Refused } from '../../src/core/decide.ts';
import type { Job } from '../../src/core/job.ts';
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
  expectDuplicate,
  LEASE_END,
  lost,
  reconcile,
  running,
  settle,
  T0,
  TOKEN,
} from '../support/job-builders.ts';

/** Sends a report that must be refused as this. */
function report(
  job: Job,
  command: SettleCommand,
  now: number = LEASE_END + 5,
  refused: Refused['refused'] = 'lease_lost',
): Refused {
  const decision: Decision = decide(job, command, contextOf(), now);
  expect(decision).toMatchObject({ accepted: false, refused });
  if (decision.accepted) throw new Error('a late report was accepted');
  return decision;
}

describe('about an UNCERTAIN attempt', () => {
  test('a late success decides the job, as its own word and then as a decision about it', () => {
    const { job, facts, testimony } = report(lost(), settle('succeeded'));
    expect(job).toMatchObject({
      state: STATE.SUCCEEDED,
      cause: 'late_report',
      version: 5,
      endedAt: LEASE_END + 5,
    });
    const digest = 'c'.repeat(64);
    const told = { tick: LEASE_END + 5, expiresAt: null, token: TOKEN };
    const outcome = 'succeeded';
    expect(facts).toEqual([
      { type: 'testimony', ...told, worker: 'worker-1', outcome, digest, to: STATE.UNCERTAIN },
      {
        type: 'reconciled',
        ...told,
        decision: 'succeeded',
        by: 'late_report',
        actor: 'worker-1',
        reason: digest,
        steps: [],
        cause: 'late_report',
        startAt: null,
        to: STATE.SUCCEEDED,
      },
    ]);
    expect(testimony).toBe(false);
  });

  test('a late permanent failure decides too', () => {
    const { job } = report(lost(), settle('permanent'));
    expect([job.state, job.cause]).toEqual([STATE.PERMANENT_FAILURE, 'late_report']);
  });

  test('the report whose own lateness made the job UNCERTAIN is heard in the same commit', () => {
    const { job, facts } = report(running({ idempotent: false }), settle('succeeded'), LEASE_END);
    expect(facts.map((fact) => fact.type)).toEqual(['lapsed', 'testimony', 'reconciled']);
    expect(job).toMatchObject({ state: STATE.SUCCEEDED, version: 5 });
  });

  test('a report that is not definite is testimony and decides nothing', () => {
    for (const outcome of ['retryable', 'uncertain', 'snoozed', 'interrupted', 'refused'] as const) {
      const { job, facts, testimony } = report(lost(), settle(outcome));
      expect(facts.map((fact) => fact.type)).toEqual(['testimony']);
      expect(job).toMatchObject({
        state: STATE.UNCERTAIN,
        cause: 'lease_expired',
        version: 4,
        testimonies: 1,
      });
      expect(testimony).toBe(false);
    }
  });

  test('where late reports are not accepted, a success is testimony and the job stays UNCERTAIN', () => {
    const { job, facts } = report(lost({ acceptLateReports: false }), settle('succeeded'));
    expect(job).toMatchObject({ state: STATE.UNCERTAIN, testimonies: 1 });
    expect(facts.map((fact) => fact.type)).toEqual(['testimony']);
  });

  test('a late success does not stand without the effect the job requires', () => {
    const { job } = report(lost({ requiresEffect: 'charge' }), settle('succeeded'));
    expect(job).toMatchObject({ state: STATE.UNCERTAIN, testimonies: 1 });
  });

  test('after its own uncertain the holder may still say what happened', () => {
    const job = doubtful();
    expectDuplicate(job, settle('uncertain'));
    const { job: decided } = report(job, settle('succeeded'), T0 + 9, 'already_settled');
    expect([decided.state, decided.cause]).toEqual([STATE.SUCCEEDED, 'late_report']);
  });

  test('the same report again adds nothing, and another one does', () => {
    const once = report(lost(), settle('retryable')).job;
    const again = report(once, settle('retryable'));
    expect(again).toMatchObject({ job: once, facts: [], testimony: false });
    expect(report(once, settle('retryable', { digest: 'f'.repeat(64) })).job.testimonies).toBe(2);
    expect(report(once, settle('snoozed')).job.testimonies).toBe(2);
  });

  test('no more than a bounded number of reports is kept, and past it not even a definite one moves the job', () => {
    let job = lost({ acceptLateReports: false });
    for (let index = 0; index < limits.testimonyPerJobMax; index += 1) {
      job = report(job, settle('succeeded', { digest: `${index}`.padStart(64, '0') })).job;
    }
    expect(job.testimonies).toBe(limits.testimonyPerJobMax);
    expect(report(job, settle('permanent'))).toMatchObject({ job, facts: [], testimony: false });
  });

  test('what was testified of one attempt is not taken for the testimony of the next', () => {
    const heard = report(doubtful(), settle('retryable'), T0 + 1, 'already_settled').job;
    const again = acceptAll(heard, [reconcile('retry'), claim({ token: 8 }), begin(8)], T0 + 1);
    expect(again).toMatchObject({ testified: null, testimonies: 0 });
    const doubt = accept(again, settle('uncertain', { token: 8, delayMs: 999 }), T0 + 1).job;
    const next = report(doubt, settle('retryable', { token: 8 }), T0 + 2, 'already_settled');
    expect(next.job.testimonies).toBe(1);
  });

  test('the report of an earlier attempt says nothing about the one in doubt', () => {
    const again = acceptAll(doubtful(), [reconcile('retry'), claim({ token: 8 }), begin(8)]);
    const doubt = accept(again, settle('uncertain', { token: 8, delayMs: 1_000 })).job;
    const { job, facts, testimony } = report(doubt, settle('succeeded'), T0 + 1, 'stale_token');
    expect(job).toEqual(doubt);
    expect(facts).toEqual([]);
    expect(testimony).toBe(true);
  });

  test('a success that asks for a slot past the end of time stays testimony', () => {
    const recurrence = { intervalMs: 1_000, maxOccurrences: 9, maxCatchUp: 0 };
    const job = { ...lost({ recurrence }), slotAt: limits.tickMax };
    expect(report(job, settle('succeeded')).job).toMatchObject({ state: STATE.UNCERTAIN, testimonies: 1 });
  });
});

describe('about anything else', () => {
  test('a report of a job that ended otherwise is kept beside the chain and changes nothing', () => {
    const failed = accept(lost(), reconcile('failed'), LEASE_END).job;
    const { job, facts, testimony } = report(failed, settle('succeeded'));
    expect(job).toEqual(failed);
    expect(facts).toEqual([]);
    expect(testimony).toBe(true);
  });

  test('the report of a holder whose job was cancelled under it is kept beside the chain', () => {
    const leased = acceptAll(running(), [settle('interrupted'), claim({ token: 8 }), cancel()]);
    expect(report(leased, settle('interrupted', { token: 8 }), T0, 'lease_lost').testimony).toBe(true);
  });

  test('the report of an earlier holder does not disturb the attempt of the new one', () => {
    const again = acceptAll(running(), [settle('interrupted'), claim({ token: 8 }), begin(8)]);
    const { job, facts, testimony } = report(again, settle('succeeded'), T0, 'stale_token');
    expect(job).toEqual(again);
    expect(facts).toEqual([]);
    expect(testimony).toBe(true);
  });

  test('a report that contradicts the accepted one is refused and kept', () => {
    const settled = accept(running(), settle('succeeded')).job;
    expect(report(settled, settle('permanent'), T0, 'already_settled').testimony).toBe(true);
  });
});

test('noise about an UNCERTAIN attempt does not crowd out the word that decides', () => {
  let job = lost();
  for (let n = 0; n < limits.testimonyIndefiniteMax + 5; n++) {
    job = report(job, settle('retryable', { digest: String(n % 10).repeat(64) })).job;
  }
  expect(job.testimonies).toBe(limits.testimonyIndefiniteMax);
  expect(report(job, settle('succeeded')).job.state).toBe(STATE.SUCCEEDED);
});
