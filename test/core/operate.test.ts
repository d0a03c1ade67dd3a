/** Cancel and promote: what an operator may move, on which view of the job, and that a requested cancellation sticks. */
import { describe, expect, test } from 'vitest';
import { lapse } from '../../src/core/lapse.ts';
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
  expectMove,
  expectRefusal,
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

const requested = (changes: Parameters<typeof running>[0] = {}) => accept(running(changes), cancel()).job;

describe('cancel', () => {
  test('a job that is not running is cancelled at once, a leased one under its holder', () => {
    const reason = 'a'.repeat(64);
    for (const job of [waiting(), waiting({ startAt: T0 + 50 }), leased()]) {
      const by = cancel({ actor: 'bob', reason });
      const { job: after, facts } = expectMove(job, by, STATE.CANCELLED, 'cancelled', T0 + 1);
      expect(after).toEqual({
        ...job,
        state: STATE.CANCELLED,
        version: job.version + 1,
        tick: T0 + 1,
        lease: null,
        cause: 'cancelled',
        endedAt: T0 + 1,
      });
      const expiresAt = job.lease?.expiresAt ?? null;
      expect(facts).toEqual([
        { type: 'cancel', tick: T0 + 1, expiresAt, actor: 'bob', reason, to: STATE.CANCELLED },
      ]);
    }
  });

  test('a running and an uncertain job are not moved: the request is recorded, once', () => {
    for (const [job, now] of [
      [running(), T0 + 1],
      [lost(), LEASE_END],
    ] as const) {
      const { job: after, facts } = accept(job, cancel(), now);
      expect(after).toEqual({ ...job, version: job.version + 1, tick: now, cancelRequested: true });
      const expiresAt = job.lease?.expiresAt ?? null;
      expect(facts).toEqual([
        { type: 'cancel', tick: now, expiresAt, actor: 'alice', reason: null, to: job.state },
      ]);
      expectDuplicate(after, cancel({ actor: 'bob' }), now);
    }
  });

  test('an ended job is not cancelled, and its end stands', () => {
    for (const outcome of ['succeeded', 'permanent'] as const) {
      expectRefusal(accept(running(), settle(outcome)).job, cancel(), 'terminal');
    }
    expectRefusal(accept(waiting(), cancel()).job, cancel(), 'terminal');
  });

  test('a cancellation decided on an older view of the job is refused', () => {
    const job = running();
    expectRefusal(job, cancel({ version: job.version - 1 }), 'version_mismatch');
    expectRefusal(job, cancel({ version: Number.NaN }), 'version_mismatch');
    accept(job, cancel({ version: job.version }));
    expectRefusal(requested(), cancel({ version: job.version }), 'version_mismatch');
  });

  test('on the tick of the deadline a cancellation comes too late', () => {
    expectMove(waiting({ deadline: T0 + 9 }), cancel(), STATE.CANCELLED, 'cancelled', T0 + 8);
    expectRefusal(waiting({ deadline: T0 + 9 }), cancel(), 'terminal', T0 + 9);
  });
});

describe('a requested cancellation sticks', () => {
  test('through every outcome that would wait again', () => {
    const to = STATE.CANCELLED;
    expectMove(requested(), settle('retryable'), to, 'cancelled');
    expectMove(requested(), settle('snoozed', { until: T0 + 1 }), to, 'cancelled');
    expectMove(requested(), settle('interrupted'), to, 'cancelled');
    expectMove(requested(), settle('refused', { byUpgrade: true }), to, 'cancelled');
    expectMove(requested(), settle('uncertain'), to, 'cancelled');
  });

  test('through the loss of its lease: a job that could run again is cancelled, and its outcome is unknown', () => {
    const { job, facts } = lapse(requested(), LEASE_END);
    expect(job).toMatchObject({ state: STATE.CANCELLED, cause: 'cancelled', outcomeUnknown: true });
    expect(facts).toMatchObject([{ type: 'lapsed', by: 'lease', to: STATE.CANCELLED }]);
  });

  test('through UNCERTAIN, where only a decided retry becomes a cancellation', () => {
    const doubt = lapse(requested({ idempotent: false }), LEASE_END).job;
    expect(doubt).toMatchObject({ state: STATE.UNCERTAIN, cancelRequested: true });
    const settled = accept(requested({ idempotent: false }), settle('uncertain')).job;
    expect(settled).toMatchObject({ state: STATE.UNCERTAIN, cancelRequested: true });
    expectMove(accept(doubtful(), cancel()).job, reconcile('retry'), STATE.CANCELLED, 'cancelled');
  });

  test('yet a success stands, a failure stands, and what is buried stays buried', () => {
    expectMove(requested(), settle('succeeded'), STATE.SUCCEEDED, 'reported');
    expectMove(requested(), settle('permanent'), STATE.PERMANENT_FAILURE, 'reported');
    expectMove(requested({ maxAttempts: 1 }), settle('retryable'), STATE.DEAD_LETTERED, 'attempts_exhausted');
    expectMove(
      requested({ maxDeliveries: 1 }),
      settle('interrupted'),
      STATE.DEAD_LETTERED,
      'deliveries_exhausted',
    );
    expect(lapse(requested({ maxAttempts: 1 }), LEASE_END).job.state).toBe(STATE.DEAD_LETTERED);
    expect(lapse(requested({ deadline: T0 + 50 }), T0 + 50).job.state).toBe(STATE.DEAD_LETTERED);
  });

  test('and it takes nothing from the attempt that runs', () => {
    expect(accept(requested(), { type: 'extend', token: TOKEN, extendMs: 5 }).job.cancelRequested).toBe(true);
  });
});

describe('promote', () => {
  test('a job that waits for a time is due at once, and stays SCHEDULED until it is claimed', () => {
    const job = waiting({ startAt: T0 + 500 });
    const { job: after, facts } = expectMove(job, promote(), STATE.SCHEDULED, null, T0 + 3);
    expect(after).toEqual({ ...job, version: 1, tick: T0 + 3, startAt: T0 + 3 });
    const by = { actor: 'alice', reason: null };
    expect(facts).toEqual([{ type: 'promoted', tick: T0 + 3, expiresAt: null, ...by, to: STATE.SCHEDULED }]);
    expectMove(after, claim(), STATE.LEASED, null, T0 + 3);
  });

  test('nothing but a SCHEDULED job is promoted', () => {
    expectRefusal(waiting(), promote(), 'wrong_state');
    expectRefusal(leased(), promote(), 'wrong_state');
    expectRefusal(lost(), promote(), 'wrong_state', LEASE_END);
    expectRefusal(accept(waiting(), cancel()).job, promote(), 'terminal');
  });

  test('a promotion decided on an older view of the job is refused', () => {
    const job = accept(running(), settle('retryable')).job;
    expectRefusal(job, promote({ version: 2 }), 'version_mismatch');
    accept(job, promote({ version: job.version }));
  });

  test('a promoted retry keeps its attempts, and a promoted slot its place in the series', () => {
    const retry = acceptAll(running(), [settle('retryable'), promote(), claim({ token: 8 }), begin(8)]);
    expect(retry).toMatchObject({ attempt: 2, runs: 2, delivery: 2 });
    const recurrence = { intervalMs: 100, maxOccurrences: 5, maxCatchUp: 9 };
    const early = accept(waiting({ recurrence, startAt: T0 + 70 }), promote(), T0 + 10).job;
    expect(early).toMatchObject({ startAt: T0 + 10, slotAt: T0 + 70 });
  });
});

test('a tick that is none is refused before anything is looked at, and nothing lapses', () => {
  const overdue = running({ deadline: T0 + 1 });
  const commands = [claim(), begin(), settle('succeeded'), cancel(), promote(), reconcile('failed')];
  for (const now of [Number.NaN, -1, T0 + 0.5, Number.POSITIVE_INFINITY, 2 ** 53]) {
    for (const command of commands) {
      const refusal = expectRefusal(overdue, command, 'tick_overflow', now, contextOf({ claimer: null }));
      expect(refusal).toMatchObject({ job: overdue, facts: [], asks: [], testimony: false });
    }
  }
});
