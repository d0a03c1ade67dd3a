/** Claim, begin and extend: who gets custody, for how long, and what nobody may take, start or keep. */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/core/limits.ts';
import { STATE } from '../../src/core/states.ts';
import {
  accept,
  acceptAll,
  begin,
  cancel,
  claim,
  contextOf,
  expectMove,
  expectRefusal,
  extend,
  factOf,
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

const INTERNAL = { purpose: 'reconcile', parentId: 3, parentToken: 5 } as const;

describe('claim', () => {
  test('a claim gives custody under its own token, until exactly one lease from now, and counts a delivery', () => {
    const { job, facts, asks } = expectMove(waiting(), claim(), STATE.LEASED, null);
    const lease = { token: TOKEN, worker: 'worker-1', expiresAt: LEASE_END, lengthMs: LEASE };
    expect(job).toEqual({ ...waiting(), state: STATE.LEASED, version: 1, token: TOKEN, delivery: 1, lease });
    expect(facts).toEqual([
      {
        type: 'claimed',
        tick: T0,
        expiresAt: LEASE_END,
        worker: 'worker-1',
        token: TOKEN,
        delivery: 1,
        idempotent: true,
        to: STATE.LEASED,
      },
    ]);
    expect(asks).toEqual([]);
  });

  test('a job whose start lies ahead is not claimed a millisecond early, and is claimed on the tick itself', () => {
    const job = waiting({ startAt: T0 + 50 });
    expect(job.state).toBe(STATE.SCHEDULED);
    expectRefusal(job, claim(), 'not_due', T0 + 49);
    expectMove(job, claim(), STATE.LEASED, null, T0 + 50);
  });

  test('a held, an uncertain and an ended job are never claimed, even by the highest token', () => {
    const command = claim({ token: limits.tokenMax });
    expectRefusal(leased(), command, 'wrong_state');
    expectRefusal(running(), command, 'wrong_state');
    expectRefusal(lost(), command, 'wrong_state', LEASE_END);
    expectRefusal(accept(waiting(), cancel()).job, command, 'terminal');
  });

  test('a token that is not above the last one is stale, also once the job waits again', () => {
    const again = accept(leased(), settle('interrupted')).job;
    expect(again.state).toBe(STATE.PENDING);
    expectRefusal(again, claim({ token: TOKEN }), 'stale_token');
    expectRefusal(again, claim({ token: TOKEN - 1 }), 'stale_token');
    expectMove(again, claim({ token: TOKEN + 1 }), STATE.LEASED, 'interrupted');
    expectRefusal(waiting(), claim({ token: 0 }), 'stale_token');
  });

  test('what the store alone knows holds a job back: its lane, its queue, its kind and its revision', () => {
    const blocked = (changes: Parameters<typeof contextOf>[0]) => contextOf(changes);
    expectRefusal(waiting(), claim(), 'lane_blocked', T0, blocked({ laneHead: false }));
    expectRefusal(waiting(), claim(), 'queue_paused', T0, blocked({ queuePaused: true }));
    expectRefusal(waiting(), claim(), 'kind_unknown', T0, blocked({ claimer: null }));
    const older = blocked({ claimer: { revision: 1, idempotent: true } });
    expectRefusal(waiting(), claim(), 'revision_unknown', T0, older);
    const newer = blocked({ claimer: { revision: 255, idempotent: true } });
    expectMove(waiting(), claim(), STATE.LEASED, null, T0, newer);
  });

  test('a claimer whose definition is not idempotent makes the job so for good, and no claimer makes it safe again', () => {
    const unsafe = contextOf({ claimer: { revision: 2, idempotent: false } });
    const { job, facts } = accept(waiting(), claim(), T0, unsafe);
    expect(job.idempotent).toBe(false);
    expect(factOf(facts, 'claimed').idempotent).toBe(false);
    const again = acceptAll(job, [settle('interrupted'), claim({ token: TOKEN + 1 })]);
    expect(again.idempotent).toBe(false);
  });

  test('a pause and an unsafe definition stop no internal job: asking about an attempt is always safe', () => {
    const context = contextOf({ queuePaused: true, claimer: { revision: 2, idempotent: false } });
    const { job } = accept(waiting({ internal: INTERNAL }), claim(), T0, context);
    expect(job.idempotent).toBe(true);
    expectMove(job, begin(), STATE.RUNNING, null, T0, context);
  });

  test('an overdue holder is lapsed in the commit of the claim that finds it, and the job goes to the claimer', () => {
    const { job, facts } = accept(leased(), claim({ token: TOKEN + 1, worker: 'worker-2' }), LEASE_END);
    expect(facts.map((fact) => fact.type)).toEqual(['lapsed', 'claimed']);
    expect(job).toMatchObject({ state: STATE.LEASED, version: 3, token: TOKEN + 1, delivery: 2, attempt: 0 });
  });

  test('a lease shorter than a millisecond, longer than its bound or past the end of time is refused, never clipped', () => {
    for (const leaseMs of [0, -1, 0.5, Number.NaN, limits.leaseMsMax + 1]) {
      expectRefusal(waiting(), claim({ leaseMs }), 'tick_overflow');
    }
    expectMove(waiting(), claim({ leaseMs: limits.leaseMsMax }), STATE.LEASED, null);
    const late = limits.tickMax - LEASE;
    expectMove(waiting(), claim(), STATE.LEASED, null, late);
    expectRefusal(waiting(), claim(), 'tick_overflow', late + 1);
  });

  test('a token that is no whole number up to 2^53-1 is never granted', () => {
    for (const token of [1.5, Number.NaN, Number.POSITIVE_INFINITY, limits.tokenMax + 1]) {
      expectRefusal(waiting(), claim({ token }), 'tick_overflow');
    }
    expectRefusal(waiting(), claim({ token: -1 }), 'stale_token');
    expectMove(waiting(), claim({ token: limits.tokenMax }), STATE.LEASED, null);
  });

  test('a recurrence whose next slot could pass the end of time is refused before its handler is dispatched', () => {
    const recurrence = { intervalMs: 1_000, maxOccurrences: 10, maxCatchUp: 5 };
    const last = limits.tickMax - 1_000 - 3_162_240_000_000;
    const waitingFrom = (startAt: number) => waiting({ recurrence, startAt });
    expectMove(waitingFrom(last), claim(), STATE.LEASED, null, last);
    expectRefusal(waitingFrom(last + 1), claim(), 'tick_overflow', last + 1);
    // The slot is unknown only in a row that was never written so: nothing recurs, and nothing can overflow.
    expectMove({ ...waiting({ recurrence }), slotAt: null }, claim(), STATE.LEASED, null);
  });
});

describe('begin', () => {
  test('a begin counts an attempt and a run, and leaves lease and token as they were', () => {
    const { job, facts } = expectMove(leased(), begin(), STATE.RUNNING, null, T0 + 1);
    expect(job).toEqual({ ...leased(), state: STATE.RUNNING, version: 2, tick: T0 + 1, attempt: 1, runs: 1 });
    const to = STATE.RUNNING;
    const held = { expiresAt: LEASE_END, worker: 'worker-1', token: TOKEN };
    expect(facts).toEqual([{ type: 'begun', tick: T0 + 1, ...held, attempt: 1, to }]);
  });

  test('a handler is not begun twice under one token', () => {
    expectRefusal(running(), begin(), 'wrong_state');
  });

  test('a job leased before its queue was paused is not begun while the pause lasts', () => {
    expectRefusal(leased(), begin(), 'queue_paused', T0, contextOf({ queuePaused: true }));
    expectMove(leased(), begin(), STATE.RUNNING, null);
  });

  test('nothing begins on the tick the lease ends, and the job waits again', () => {
    expectMove(leased(), begin(), STATE.RUNNING, null, LEASE_END - 1);
    const { job } = expectRefusal(leased(), begin(), 'lease_lost', LEASE_END);
    expect(job.state).toBe(STATE.PENDING);
  });

  test('nothing begins on the tick of the deadline', () => {
    const job = leased({ deadline: T0 + 50 });
    expectMove(job, begin(), STATE.RUNNING, null, T0 + 49);
    const { job: after } = expectRefusal(job, begin(), 'lease_lost', T0 + 50);
    expect(after.state).toBe(STATE.DEAD_LETTERED);
  });

  test('a job that was never claimed is begun by nobody, token 0 included', () => {
    expectRefusal(waiting(), begin(0), 'stale_token');
    expectRefusal(waiting(), begin(TOKEN), 'stale_token');
  });
});

describe('extend', () => {
  test('an extension counts from now, not from the old expiry, and may shorten a lease', () => {
    const longer = accept(running(), extend(500), T0 + 60);
    expect(longer.job.lease).toMatchObject({ expiresAt: T0 + 560, lengthMs: 500 });
    const shorter = accept(running(), extend(1), T0 + 10);
    expect(shorter.job.lease).toMatchObject({ expiresAt: T0 + 11, lengthMs: 1 });
  });

  test('a heartbeat is no fact: it changes nothing but the lease, neither version nor tick', () => {
    for (const job of [leased(), running()]) {
      const decision = accept(job, extend(), T0 + 60);
      expect(decision.facts).toEqual([]);
      expect({ ...decision.job, lease: null }).toEqual({ ...job, lease: null });
    }
  });

  test('a lease that is over is not revived, on the very tick of its end either', () => {
    expect(accept(running(), extend(), LEASE_END - 1).job.lease?.expiresAt).toBe(LEASE_END - 1 + LEASE);
    expectRefusal(leased(), extend(), 'lease_lost', LEASE_END);
  });

  test('a stale token extends nothing, nor does the last one once the attempt was settled', () => {
    expectRefusal(running(), extend(LEASE, TOKEN - 1), 'stale_token');
    expectRefusal(running(), extend(LEASE, TOKEN + 1), 'stale_token');
    expectRefusal(accept(running(), settle('succeeded')).job, extend(), 'already_settled');
  });

  test('an extension of nothing, of a fraction, or beyond its bound or the end of time is refused', () => {
    for (const extendMs of [0, -1, 1.5, Number.NaN, limits.leaseMsMax + 1]) {
      expectRefusal(running(), extend(extendMs), 'tick_overflow');
    }
    const job = acceptAll(waiting(), [claim(), begin()], limits.tickMax - LEASE);
    expectRefusal(job, extend(LEASE + 1), 'tick_overflow', limits.tickMax - LEASE);
  });

  test('a row that names a lease in a state without custody gives its bearer nothing', () => {
    const torn = { ...leased(), state: STATE.PENDING };
    expectRefusal(torn, extend(), 'wrong_state');
    expectRefusal(torn, begin(), 'wrong_state');
  });
});
