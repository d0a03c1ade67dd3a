/** A clock that is followed back: what was reckoned from the wrong reading is cut, what was named as a tick stays. */
import { describe, expect, test } from 'vitest';
import type { Job } from '../../src/core/job.ts';
import { cutLease, lapse } from '../../src/core/lapse.ts';
import { STATE } from '../../src/core/states.ts';
import {
  accept,
  acceptAll,
  cancel,
  claim,
  doubtful,
  extend,
  LEASE,
  LEASE_END,
  lost,
  promote,
  reconcile,
  running,
  settle,
  T0,
  waiting,
} from '../support/job-builders.ts';

const DEADLINE = T0 + 50;

describe('a clock that is followed back', () => {
  const corrected = (job: Job, now: number) => {
    const { job: after, facts } = lapse(job, now);
    const expiresAt = after.lease?.expiresAt ?? null;
    const { startAt } = after;
    const recorded = { tick: now, expiresAt, from: job.tick, startAt, to: job.state };
    expect(facts).toEqual([{ type: 'clock_corrected', ...recorded }]);
    expect(after).toMatchObject({ state: job.state, version: job.version + 1, tick: now });
    return after;
  };

  test('the correction is recorded, and the tick of the job falls only then', () => {
    expect(corrected(waiting(), T0 - 600)).toEqual({ ...waiting(), version: 1, tick: T0 - 600 });
    expect(lapse(waiting(), T0)).toEqual({ job: waiting(), facts: [] });
    corrected(lost(), T0 - 1);
  });

  test('a lease from a wrong reading is cut to its length from now, and never made longer', () => {
    expect(corrected(running(), T0 - 600).lease).toMatchObject({
      expiresAt: T0 - 600 + LEASE,
      lengthMs: LEASE,
    });
    const short = running();
    expect(corrected(short, T0 - 1).lease?.expiresAt).toBe(LEASE_END - 1);
    const extended = accept(running(), extend(30), T0 + 20).job;
    const later = accept(extended, cancel(), T0 + 40).job;
    expect(corrected(later, T0 + 35).lease?.expiresAt).toBe(T0 + 50);
  });

  test('a lease cut so short that it is over ends in the same commit, after the correction', () => {
    const job = accept(accept(running(), extend(10), T0 + 20).job, cancel(), T0 + 25).job;
    const torn = { ...job, lease: job.lease && { ...job.lease, expiresAt: T0 + 22 } };
    const { job: after, facts } = lapse(torn, T0 + 23);
    expect(facts.map((fact) => fact.type)).toEqual(['clock_corrected', 'lapsed']);
    expect(after).toMatchObject({ state: STATE.CANCELLED, version: job.version + 2 });
  });

  test('the start of a retry moves with the correction: nobody waits for a phantom future', () => {
    const retry = accept(running(), settle('retryable', { delayMs: 40 })).job;
    expect(corrected(retry, T0 - 600).startAt).toBe(T0 - 560);
    const policy = accept(running(), settle('uncertain', { delayMs: 40 })).job;
    expect(corrected(policy, T0 - 600).startAt).toBe(T0 - 560);
    const stranded = accept(running(), settle('refused', { byUpgrade: true })).job;
    expect(corrected(stranded, T0 - 600).startAt).toBe(T0 - 520);
    const promoted = accept(retry, promote(), T0 + 10).job;
    expect(corrected(promoted, T0 - 600).startAt).toBe(T0 - 600);
  });

  test('a start that was named as a tick stays that tick', () => {
    expect(corrected(waiting({ startAt: T0 + 9 }), T0 - 600).startAt).toBe(T0 + 9);
    const snoozed = accept(running(), settle('snoozed', { until: T0 + 9 })).job;
    expect(corrected(snoozed, T0 - 600).startAt).toBe(T0 + 9);
    const recurrence = { intervalMs: 100, maxOccurrences: 5, maxCatchUp: 9 };
    const slot = accept(running({ recurrence }), settle('succeeded')).job;
    expect(corrected(slot, T0 - 600).startAt).toBe(T0 + 100);
  });

  test('a claimed retry carries its cause and is not moved any more', () => {
    const retry = acceptAll(running(), [settle('retryable', { delayMs: 0 }), claim({ token: 8 })]);
    expect(retry.cause).toBe('retry_scheduled');
    expect(corrected(retry, T0 - 600).startAt).toBe(T0);
  });

  test('a deadline is absolute: no correction moves it', () => {
    const job = running({ deadline: DEADLINE });
    expect(corrected(job, T0 - 600).submission.deadline).toBe(DEADLINE);
  });

  test('a decision made by the corrected clock is recorded after the correction', () => {
    const { job, facts } = accept(doubtful(), reconcile('retry'), T0 - 5);
    expect(facts.map((fact) => [fact.type, fact.tick])).toEqual([
      ['clock_corrected', T0 - 5],
      ['reconciled', T0 - 5],
    ]);
    expect(job).toMatchObject({ tick: T0 - 5, startAt: T0 - 5, version: 5 });
  });
});

test('cutting a lease at a tick leaves a shorter one, and a job without one, as they are', () => {
  expect(cutLease(waiting(), 0)).toEqual(waiting());
  expect(cutLease(running(), T0 + 50)).toEqual(running());
  expect(cutLease(running(), T0 - 50).lease?.expiresAt).toBe(T0 + 50);
});
