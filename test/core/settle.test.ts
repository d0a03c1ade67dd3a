/** Settling: every outcome lands where it must, what is given back is given back, and a report counts once. */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/core/limits.ts';
import { STATE } from '../../src/core/states.ts';
import {
  accept,
  acceptAll,
  begin,
  claim,
  expectMove,
  expectRefusal,
  LEASE,
  LEASE_END,
  leased,
  running,
  settle,
  T0,
  TOKEN,
  waiting,
} from '../support/job-builders.ts';

const REPORTS = ['succeeded', 'retryable', 'permanent', 'uncertain', 'snoozed', 'refused'] as const;

test('a settlement ends the lease, keeps its answer, and records what was reported and what came of it', () => {
  const { job, facts } = expectMove(running(), settle('succeeded'), STATE.SUCCEEDED, 'reported', T0 + 5);
  expect(job).toMatchObject({ version: 3, tick: T0 + 5, lease: null, endedAt: T0 + 5, attempt: 1, runs: 1 });
  expect(job.answered).toEqual({ token: TOKEN, outcome: 'succeeded', digest: 'c'.repeat(64) });
  const { type: _type, ...asked } = settle('succeeded');
  const outcome = { cause: 'reported', startAt: null, to: STATE.SUCCEEDED };
  expect(facts).toEqual([{ type: 'settled', tick: T0 + 5, expiresAt: LEASE_END, ...asked, ...outcome }]);
});

test('no outcome but interrupted is taken of a handler that was never begun', () => {
  for (const outcome of REPORTS) {
    expectRefusal(leased(), settle(outcome, { until: T0 + 500 }), 'wrong_state');
  }
});

test('a permanent failure is permanent on the first attempt', () => {
  const { job } = expectMove(running(), settle('permanent'), STATE.PERMANENT_FAILURE, 'reported');
  expect(job).toMatchObject({ endedAt: T0, runs: 1 });
});

describe('retryable', () => {
  test('the first retry waits the base, each further one double, and none longer than the cap', () => {
    let job = running({ maxAttempts: 9 });
    let now = T0;
    for (const [index, delay] of [10, 20, 40, 80, 80].entries()) {
      const { job: scheduled } = expectMove(
        job,
        settle('retryable', { token: TOKEN + index }),
        STATE.SCHEDULED,
        'retry_scheduled',
        now,
      );
      expect(scheduled.startAt).toBe(now + delay);
      now = scheduled.startAt;
      job = acceptAll(scheduled, [claim({ token: TOKEN + index + 1 }), begin(TOKEN + index + 1)], now);
    }
  });

  test('a delay the handler names takes the place of the backoff, and jitter is added to either', () => {
    expect(accept(running(), settle('retryable', { delayMs: 0 })).job.startAt).toBe(T0);
    expect(accept(running(), settle('retryable', { delayMs: 500, jitterMs: 7 })).job.startAt).toBe(T0 + 507);
    expect(accept(running(), settle('retryable', { jitterMs: 7 })).job.startAt).toBe(T0 + 17);
  });

  test('the last attempt is buried, not scheduled', () => {
    const job = running({ maxAttempts: 1 });
    const { job: dead } = expectMove(job, settle('retryable'), STATE.DEAD_LETTERED, 'attempts_exhausted');
    expect(dead).toMatchObject({ endedAt: T0, outcomeUnknown: false });
  });

  test('a retry that would start on the deadline is buried at once, and one a millisecond earlier is not', () => {
    const job = running({ deadline: T0 + 50 });
    expectMove(job, settle('retryable', { delayMs: 49 }), STATE.SCHEDULED, 'retry_scheduled');
    expectMove(job, settle('retryable', { delayMs: 50 }), STATE.DEAD_LETTERED, 'retry_after_deadline');
    const jittered = settle('retryable', { delayMs: 40, jitterMs: 10 });
    expectMove(job, jittered, STATE.DEAD_LETTERED, 'retry_after_deadline');
  });

  test('attempts that are used up are named before the deadline', () => {
    const job = running({ maxAttempts: 1, deadline: T0 + 50 });
    expectMove(job, settle('retryable', { delayMs: 50 }), STATE.DEAD_LETTERED, 'attempts_exhausted');
  });
});

describe('snoozed', () => {
  test('a snooze starts at its tick and gives the attempt back, yet the job has run', () => {
    const { job } = expectMove(running(), settle('snoozed', { until: T0 + 1 }), STATE.SCHEDULED, 'snoozed');
    expect(job).toMatchObject({ startAt: T0 + 1, attempt: 0, runs: 1, delivery: 1 });
  });

  test('a snooze that ends now, before now, or never is refused and the attempt goes on', () => {
    for (const until of [T0, T0 - 1, null, Number.NaN, T0 + 0.5, limits.tickMax + 1]) {
      expectRefusal(running(), settle('snoozed', { until }), 'tick_overflow');
    }
  });

  test('a snooze to the deadline is buried, and one to the tick before is not', () => {
    const job = running({ deadline: T0 + 50 });
    expectMove(job, settle('snoozed', { until: T0 + 49 }), STATE.SCHEDULED, 'snoozed');
    const dead = expectMove(
      job,
      settle('snoozed', { until: T0 + 50 }),
      STATE.DEAD_LETTERED,
      'retry_after_deadline',
    );
    expect(dead.job.attempt).toBe(0);
  });
});

describe('interrupted', () => {
  test('a holder that never began gives the job back, with nothing to give back of an attempt', () => {
    for (const neverCalled of [true, false]) {
      const command = settle('interrupted', { neverCalled });
      const { job } = expectMove(leased(), command, STATE.PENDING, 'interrupted', T0 + 9);
      expect(job).toMatchObject({ attempt: 0, runs: 0, delivery: 1, startAt: T0 + 9, lease: null });
    }
  });

  test('an interrupted attempt is given back, and only one whose handler was never called did not run', () => {
    const stopped = expectMove(running(), settle('interrupted'), STATE.PENDING, 'interrupted').job;
    expect(stopped).toMatchObject({ attempt: 0, runs: 1 });
    const never = accept(running(), settle('interrupted', { neverCalled: true })).job;
    expect(never).toMatchObject({ attempt: 0, runs: 0 });
  });

  test('an interruption is never lost to a non-idempotent contract: the handler itself said it stopped', () => {
    expectMove(running({ idempotent: false }), settle('interrupted'), STATE.PENDING, 'interrupted');
  });
});

describe('refused', () => {
  test('a payload bad for its own revision fails for good, and the handler never ran', () => {
    const { job } = expectMove(running(), settle('refused'), STATE.PERMANENT_FAILURE, 'payload_refused');
    expect(job).toMatchObject({ attempt: 0, runs: 0, endedAt: T0 });
  });

  test('a payload bad only through an upgrade waits as long as the backoff can make it wait', () => {
    const command = settle('refused', { byUpgrade: true });
    const { job } = expectMove(running(), command, STATE.SCHEDULED, 'upgrade_refused');
    expect(job).toMatchObject({ attempt: 0, runs: 0, startAt: T0 + 80, endedAt: null });
  });

  test('a wait for an upgrade is never scheduled at or past the deadline, or past the end of time', () => {
    const command = settle('refused', { byUpgrade: true });
    expectMove(running({ deadline: T0 + 80 }), command, STATE.DEAD_LETTERED, 'retry_after_deadline');
    expectMove(running({ deadline: T0 + 81 }), command, STATE.SCHEDULED, 'upgrade_refused');
    const job = acceptAll(waiting(), [claim({ leaseMs: 70 }), begin()], limits.tickMax - 70);
    expectRefusal(job, command, 'tick_overflow', limits.tickMax - 70);
  });
});

describe('deliveries', () => {
  const bounded = { maxAttempts: 3, maxDeliveries: 1 };

  test('no outcome that would wait again goes past the bound of deliveries', () => {
    const cause = 'deliveries_exhausted';
    expectMove(running(bounded), settle('retryable'), STATE.DEAD_LETTERED, cause);
    expectMove(running(bounded), settle('snoozed', { until: T0 + 1 }), STATE.DEAD_LETTERED, cause);
    expectMove(running(bounded), settle('interrupted'), STATE.DEAD_LETTERED, cause);
    expectMove(leased(bounded), settle('interrupted'), STATE.DEAD_LETTERED, cause);
    expectMove(running(bounded), settle('refused', { byUpgrade: true }), STATE.DEAD_LETTERED, cause);
  });

  test('with one delivery left the job waits again', () => {
    const job = running({ ...bounded, maxDeliveries: 2 });
    expectMove(job, settle('retryable'), STATE.SCHEDULED, 'retry_scheduled');
    expectMove(job, settle('interrupted'), STATE.PENDING, 'interrupted');
  });
});

describe('numbers outside of their domain', () => {
  test('no outcome takes a delay, jitter or tick that its record could not hold', () => {
    const bad = [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, limits.tickMax + 1];
    for (const outcome of [...REPORTS, 'interrupted'] as const) {
      const good = settle(outcome, { until: T0 + 1, byUpgrade: true });
      for (const value of bad) {
        expectRefusal(running(), { ...good, jitterMs: value }, 'tick_overflow');
        expectRefusal(running(), { ...good, delayMs: value }, 'tick_overflow');
        expectRefusal(running(), { ...good, until: value }, 'tick_overflow');
      }
      expectRefusal(running(), { ...good, jitterMs: limits.jitterMsMax + 1 }, 'tick_overflow');
      expectRefusal(running(), { ...good, delayMs: limits.backoffMsMax + 1 }, 'tick_overflow');
      accept(running(), { ...good, jitterMs: limits.jitterMsMax, delayMs: limits.backoffMsMax });
    }
    const mixed = settle('retryable', { delayMs: -5, jitterMs: 10 });
    expectRefusal(running(), mixed, 'tick_overflow');
  });

  test('a retry whose start would pass 2^53-1 is refused, and the last tick itself is reached', () => {
    const now = limits.tickMax - LEASE;
    const job = acceptAll(waiting(), [claim(), begin()], now);
    expect(accept(job, settle('retryable', { delayMs: LEASE }), now).job.startAt).toBe(limits.tickMax);
    expectRefusal(job, settle('retryable', { delayMs: LEASE, jitterMs: 1 }), 'tick_overflow', now);
    const uncertain = settle('uncertain', { delayMs: LEASE + 1 });
    expectRefusal(job, uncertain, 'tick_overflow', now);
  });

  test('a policy that no backoff can be reckoned from schedules nothing', () => {
    expectRefusal(running({ backoffBaseMs: Number.NaN }), settle('retryable'), 'tick_overflow');
  });
});
