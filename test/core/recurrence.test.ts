/** Recurrence: every way to succeed goes on, every other end ends the series, and no missed slot is run in a burst. */
import { describe, expect, test } from 'vitest';
import type { Job, Submission } from '../../src/core/job.ts';
import { lapse } from '../../src/core/lapse.ts';
import { limits } from '../../src/core/limits.ts';
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
  expectDuplicate,
  expectMove,
  expectRefusal,
  LEASE_END,
  lost,
  promote,
  reconcile,
  running,
  settle,
  T0,
  TOKEN,
  waiting,
} from '../support/job-builders.ts';

const recurrence = { intervalMs: 100, maxOccurrences: 3, maxCatchUp: 2 };
const recurring = (changes: Partial<Submission> = {}): Job => running({ recurrence, ...changes });

/** The next occurrence of a job that succeeded at `now`. */
function next(job: Job, now: number, token: number = TOKEN): Job {
  return expectMove(job, settle('succeeded', { token }), STATE.SCHEDULED, 'recurrence', now).job;
}

function held(job: Job, token: number, now: number, leaseMs = 10_000): Job {
  return acceptAll(job, [claim({ token, leaseMs }), begin(token)], now);
}

describe('a success', () => {
  test('goes on to the next slot, counted from the slot and not from when it ran', () => {
    const { job, facts } = accept(recurring(), settle('succeeded'), T0 + 60);
    expect(job).toMatchObject({ state: STATE.SCHEDULED, occurrence: 1, startAt: T0 + 100, slotAt: T0 + 100 });
    expect(facts).toMatchObject([
      { type: 'settled', cause: 'recurrence', startAt: T0 + 100, to: STATE.SCHEDULED },
    ]);
    expect(job.endedAt).toBeNull();
  });

  test('starts the next occurrence with nothing of the last: neither attempts nor runs, deliveries, steps or effects', () => {
    const worked = acceptAll(recurring({ requiresEffect: 'charge' }), [
      commitEffect('charge'),
      beginStep('mail', false),
    ]);
    expect(next(worked, T0)).toMatchObject({
      attempt: 0,
      runs: 0,
      delivery: 0,
      openSteps: [],
      requiredEffectCommitted: false,
    });
    const again = held(next(worked, T0), 8, T0 + 100);
    expectRefusal(again, settle('succeeded', { token: 8 }), 'effect_not_committed', T0 + 100);
  });

  test('keeps what must outlive it: the answer under its token, and a contract that was found unsafe', () => {
    const unsafe = contextOf({ claimer: { revision: 2, idempotent: false } });
    const job = acceptAll(accept(waiting({ recurrence }), claim(), T0, unsafe).job, [begin()]);
    const after = next(job, T0);
    expect(after).toMatchObject({ idempotent: false, token: TOKEN });
    expectDuplicate(after, settle('succeeded'), T0 + 1);
    expectRefusal(after, settle('permanent'), 'already_settled', T0 + 1);
  });

  test('of the last occurrence ends the series', () => {
    let job = recurring();
    for (const token of [8, 9]) {
      const slot = next(job, job.startAt, job.token);
      job = held(slot, token, slot.startAt);
    }
    expect(job.occurrence).toBe(2);
    expectMove(job, settle('succeeded', { token: 9 }), STATE.SUCCEEDED, 'reported', job.startAt);
  });

  test('skips the slots that were missed, at most as many as may be caught up', () => {
    const at = (now: number) => next(held(waiting({ recurrence }), TOKEN, T0), now).startAt;
    expect(at(T0 + 99)).toBe(T0 + 100);
    expect(at(T0 + 100)).toBe(T0 + 200);
    expect(at(T0 + 299)).toBe(T0 + 300);
    expect(at(T0 + 300)).toBe(T0 + 300);
    expect(at(T0 + 5_000)).toBe(T0 + 300);
  });

  test('before its slot, after a promotion, goes on from the slot and loses no place', () => {
    const early = accept(waiting({ recurrence, startAt: T0 + 80 }), promote(), T0 + 10).job;
    expect(next(held(early, TOKEN, T0 + 10), T0 + 20).startAt).toBe(T0 + 180);
  });

  test('after a retry goes on from the slot, which a retry does not move', () => {
    const retry = accept(recurring(), settle('retryable', { delayMs: 30 })).job;
    expect(retry).toMatchObject({ startAt: T0 + 30, slotAt: T0, occurrence: 0 });
    expect(next(held(retry, 8, T0 + 30), T0 + 31, 8).startAt).toBe(T0 + 100);
  });

  test('whose next slot is the deadline ends the series as a success, and one a millisecond earlier does not', () => {
    expectMove(recurring({ deadline: T0 + 100 }), settle('succeeded'), STATE.SUCCEEDED, 'reported');
    expectMove(recurring({ deadline: T0 + 101 }), settle('succeeded'), STATE.SCHEDULED, 'recurrence');
  });

  test('ends the series when a cancellation was requested, and stands', () => {
    const job = accept(recurring(), cancel()).job;
    const { job: after } = expectMove(job, settle('succeeded'), STATE.SUCCEEDED, 'reported');
    expect(after.occurrence).toBe(0);
  });

  test('of a row without a slot ends it: no slot is guessed', () => {
    expectMove({ ...recurring(), slotAt: null }, settle('succeeded'), STATE.SUCCEEDED, 'reported');
  });

  test('whose next slot would pass the end of time is refused, and the attempt goes on', () => {
    const torn = { ...recurring(), slotAt: limits.tickMax - 99 };
    expectRefusal(torn, settle('succeeded'), 'tick_overflow');
  });
});

describe('a decided success', () => {
  test('goes on as a reported one does', () => {
    const { job } = expectMove(
      lost({ recurrence }),
      reconcile('succeeded'),
      STATE.SCHEDULED,
      'recurrence',
      LEASE_END + 150,
    );
    expect(job).toMatchObject({
      occurrence: 1,
      startAt: T0 + 300,
      runs: 0,
      attempt: 0,
      outcomeUnknown: false,
    });
  });

  test('ends the series on the deadline, although a missed slot lies before it: nothing could start there', () => {
    const deadline = T0 + 301;
    const decided = (now: number) => accept(lost({ recurrence, deadline }), reconcile('succeeded'), now).job;
    expect(decided(deadline - 1)).toMatchObject({ state: STATE.SCHEDULED, startAt: T0 + 300 });
    expect(decided(deadline)).toMatchObject({
      state: STATE.SUCCEEDED,
      cause: 'reconciled',
      endedAt: deadline,
    });
  });

  test('is not taken when its next slot would pass the end of time', () => {
    const torn = { ...lost({ recurrence }), slotAt: limits.tickMax - 99 };
    expectRefusal(torn, reconcile('succeeded'), 'tick_overflow', LEASE_END);
  });
});

describe('any other end', () => {
  test('ends the series: a failure, a decided failure, a cancellation, and a burial', () => {
    expectMove(recurring(), settle('permanent'), STATE.PERMANENT_FAILURE, 'reported');
    expectMove(recurring({ maxAttempts: 1 }), settle('retryable'), STATE.DEAD_LETTERED, 'attempts_exhausted');
    expectMove(lost({ recurrence }), reconcile('failed'), STATE.PERMANENT_FAILURE, 'reconciled', LEASE_END);
    expectMove(next(recurring(), T0), cancel(), STATE.CANCELLED, 'cancelled', T0 + 1);
    expect(lapse(next(recurring({ deadline: T0 + 101 }), T0), T0 + 101).job.state).toBe(STATE.DEAD_LETTERED);
  });

  test('does not count as a run of an occurrence that never began', () => {
    const cancelled = accept(next(recurring(), T0), cancel()).job;
    expect(cancelled).toMatchObject({ occurrence: 1, runs: 0 });
  });
});

test('the deliveries of earlier occurrences do not use up those of later ones', () => {
  let job = recurring({ maxDeliveries: 2, recurrence: { ...recurrence, maxOccurrences: 9 } });
  for (let token = 8; token < 12; token += 1) {
    const slot = next(job, job.startAt, token - 1);
    job = held(slot, token, slot.startAt);
  }
  expect(job).toMatchObject({ occurrence: 4, delivery: 1 });
});
