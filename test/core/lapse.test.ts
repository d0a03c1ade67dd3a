/** Lapse: what time does to each state, deadline before lease, and what a clock that was followed back leaves behind. */
import { describe, expect, test } from 'vitest';
import type { Job, Submission } from '../../src/core/job.ts';
import { lapse } from '../../src/core/lapse.ts';
import { limits } from '../../src/core/limits.ts';
import { STATE, STATE_NAMES } from '../../src/core/states.ts';
import {
  accept,
  acceptAll,
  begin,
  claim,
  doubtful,
  extend,
  LEASE,
  LEASE_END,
  leased,
  lost,
  running,
  settle,
  T0,
  TOKEN,
  waiting,
} from '../support/job-builders.ts';

const DEADLINE = T0 + 50;

/** The job lapses at `now` to this state, and not a millisecond earlier. */
function expectLapse(job: Job, now: number, to: keyof typeof STATE, cause: Job['cause']): Job {
  expect(lapse(job, now - 1)).toEqual({ job, facts: [] });
  const { job: after, facts } = lapse(job, now);
  expect([STATE_NAMES[after.state], after.cause]).toEqual([to, cause]);
  const lease = job.lease?.expiresAt ?? null;
  const byDeadline = job.submission.deadline === now;
  const by = byDeadline ? 'deadline' : 'lease';
  const recorded = { tick: now, expiresAt: lease, token: job.token, at: now };
  expect(facts).toEqual([{ type: 'lapsed', ...recorded, by, cause, to: STATE[to] }]);
  expect(after).toMatchObject({ version: job.version + 1, tick: now, lease: null });
  expect(lapse(after, now)).toEqual({ job: after, facts: [] });
  return after;
}

describe('deadline', () => {
  test('what has not begun is buried on the tick of the deadline', () => {
    const deadline = DEADLINE;
    for (const job of [
      waiting({ deadline }),
      waiting({ deadline, startAt: T0 + 20 }),
      leased({ deadline }),
    ]) {
      const dead = expectLapse(job, DEADLINE, 'DEAD_LETTERED', 'deadline_passed');
      expect(dead).toMatchObject({ endedAt: DEADLINE, outcomeUnknown: false });
    }
  });

  test('a running job that may run twice is buried with its outcome unknown, and one that may not is in doubt', () => {
    const safe = running({ deadline: DEADLINE });
    expect(expectLapse(safe, DEADLINE, 'DEAD_LETTERED', 'deadline_passed').outcomeUnknown).toBe(true);
    const unsafe = running({ deadline: DEADLINE, idempotent: false });
    const doubt = expectLapse(unsafe, DEADLINE, 'UNCERTAIN', 'deadline_passed');
    expect(doubt).toMatchObject({ outcomeUnknown: false, endedAt: null });
  });

  test('the deadline is looked at before the lease, when both are over and when both end on one tick', () => {
    for (const deadline of [DEADLINE, LEASE_END]) {
      for (const job of [
        leased({ deadline }),
        running({ deadline }),
        running({ deadline, idempotent: false }),
      ]) {
        expect(lapse(job, LEASE_END).facts).toMatchObject([{ type: 'lapsed', by: 'deadline', at: deadline }]);
      }
    }
    const [fact] = lapse(running({ deadline: LEASE_END + 1 }), LEASE_END).facts;
    expect(fact).toMatchObject({ by: 'lease', at: LEASE_END });
  });

  test('a deadline found late is recorded with the tick it was and the tick it was found', () => {
    const [fact] = lapse(waiting({ deadline: DEADLINE }), DEADLINE + 777).facts;
    expect(fact).toMatchObject({ at: DEADLINE, tick: DEADLINE + 777 });
  });
});

describe('lease', () => {
  test('a job that was leased and never begun waits again, whatever its contract', () => {
    for (const idempotent of [true, false]) {
      const job = leased({ idempotent, maxAttempts: 1 });
      const again = expectLapse(job, LEASE_END, 'PENDING', 'lease_expired');
      expect(again).toMatchObject({ startAt: LEASE_END, attempt: 0, delivery: 1, token: TOKEN });
    }
  });

  test('a lost attempt that may run twice waits again while attempts are left, and they are not given back', () => {
    const again = expectLapse(running({ maxAttempts: 2 }), LEASE_END, 'PENDING', 'lease_expired');
    expect(again).toMatchObject({ attempt: 1, runs: 1, outcomeUnknown: false });
  });

  test('a lost last attempt is buried with its outcome unknown', () => {
    const dead = expectLapse(running({ maxAttempts: 1 }), LEASE_END, 'DEAD_LETTERED', 'lease_expired');
    expect(dead).toMatchObject({ endedAt: LEASE_END, outcomeUnknown: true });
  });

  test('a lost attempt that may not run twice is never run again and never buried', () => {
    for (const changes of [{ maxAttempts: 1 }, { maxAttempts: 9 }, { maxDeliveries: 1 }]) {
      const job = running({ idempotent: false, ...changes });
      expectLapse(job, LEASE_END, 'UNCERTAIN', 'lease_expired');
    }
  });

  test('a crash loop ends at the bound of deliveries', () => {
    expectLapse(leased({ maxDeliveries: 1 }), LEASE_END, 'DEAD_LETTERED', 'deliveries_exhausted');
    const dead = expectLapse(
      running({ maxDeliveries: 1 }),
      LEASE_END,
      'DEAD_LETTERED',
      'deliveries_exhausted',
    );
    expect(dead.outcomeUnknown).toBe(true);
    let job = waiting({ maxAttempts: 2, maxDeliveries: 4 });
    let now = T0;
    for (let token = 1; token <= 4; token += 1, now += LEASE) {
      job = accept(job, claim({ token }), now).job;
    }
    const end = lapse(job, now).job;
    expect(end).toMatchObject({
      state: STATE.DEAD_LETTERED,
      cause: 'deliveries_exhausted',
      outcomeUnknown: false,
    });
  });

  test('an extended lease lapses at its new end, and a shortened one too', () => {
    expectLapse(accept(running(), extend(500), T0 + 60).job, T0 + 560, 'PENDING', 'lease_expired');
    expectLapse(accept(running(), extend(5), T0 + 60).job, T0 + 65, 'PENDING', 'lease_expired');
  });
});

test('UNCERTAIN and terminal jobs never lapse, however long they are looked at', () => {
  const doubt = lost({ deadline: LEASE_END + 1 });
  const ended = accept(running({ deadline: DEADLINE }), settle('succeeded')).job;
  for (const job of [doubt, doubtful(), ended]) {
    expect(lapse(job, limits.tickMax)).toEqual({ job, facts: [] });
  }
  expect(lapse(ended, 0)).toEqual({ job: ended, facts: [] });
});

test('a tick that is none lets nothing lapse', () => {
  const job = running({ deadline: DEADLINE });
  for (const now of [Number.NaN, -1, LEASE_END + 0.5, Number.POSITIVE_INFINITY]) {
    expect(lapse(job, now)).toEqual({ job, facts: [] });
  }
});

test('attempts are counted over losses until none is left', () => {
  const changes: Partial<Submission> = { maxAttempts: 3 };
  let job = waiting(changes);
  let now = T0;
  for (const token of [1, 2, 3]) {
    expect(job.state).toBe(STATE.PENDING);
    job = acceptAll(job, [claim({ token }), begin(token)], now);
    now += LEASE;
    job = lapse(job, now).job;
  }
  expect(job).toMatchObject({
    state: STATE.DEAD_LETTERED,
    cause: 'lease_expired',
    attempt: 3,
    runs: 3,
    delivery: 3,
  });
});
