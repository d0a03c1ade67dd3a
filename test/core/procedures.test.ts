import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cancelIsLegal, cancelNextState, compensationIsRequired } from '../../src/core/cancellation.ts';
import {
  bytesEqual,
  ENQUEUE,
  idempotencyEnqueueOutcome,
  payloadSchemaIsCompatible,
} from '../../src/core/identity.ts';
import {
  beginExecutionIsLegal,
  claimIsLegal,
  completionIsLegal,
  heartbeatIsLegal,
  leaseIsCurrent,
  leaseIsExpired,
} from '../../src/core/lease.ts';
import {
  attemptIsWithinCeiling,
  OUTCOME,
  outcomeKindIsValid,
  retryBackoffTicks,
  retryNextStateAfterOutcome,
  retryShouldDeadLetter,
} from '../../src/core/retry.ts';
import { revisionIsKnown, revisionRequiresRefusal } from '../../src/core/revision.ts';
import {
  scheduleCatchUpNextRun,
  scheduleIsDue,
  scheduleMissedWindows,
  scheduleRecurrenceIsExhausted,
} from '../../src/core/schedule.ts';
import {
  STATE,
  STATE_NAMES,
  STATE_TABLE,
  stateAwaitsWorker,
  stateHoldsLease,
  stateIsTerminal,
  stateIsValid,
} from '../../src/core/states.ts';
import { addTicks, areTicks, isTick, TICK_MAX } from '../../src/core/ticks.ts';
import { DECISION, uncertainReconcile, uncertainRetryIsPermitted } from '../../src/core/uncertainty.ts';

type Procedure = (...args: never[]) => unknown;

/** Calls as JavaScript would: the types are no protection against a column that was read wrong. */
const call = (procedure: Procedure, args: readonly unknown[]): unknown => procedure(...(args as never[]));

const OUTSIDE = [Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 2 ** 53];
const NOT_EVEN_NUMBERS = ['3', null, undefined, 3n, true, [3], {}];

const STATES = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const NO_STATES = [10, 255, ...OUTSIDE];

const U8 = Array.from({ length: 256 }, (_, value) => value);

/** All combinations of u8 arguments for which the procedure differs from its rule. */
const differing = (
  procedure: (a: number, b: number) => boolean,
  rule: (a: number, b: number) => boolean,
): string[] => U8.flatMap((a) => U8.filter((b) => procedure(a, b) !== rule(a, b)).map((b) => `(${a}, ${b})`));

const anyTick = fc.oneof(
  fc.nat(20),
  fc.maxSafeNat(),
  fc.nat(20).map((below) => TICK_MAX - below),
);
const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);

describe('std.jobs.state: codes and predicates', () => {
  it('no code moves: stored numbers keep their meaning', () => {
    expect(STATE).toEqual({
      PENDING: 0,
      SCHEDULED: 1,
      LEASED: 2,
      RUNNING: 3,
      SUCCEEDED: 4,
      RETRYABLE_FAILURE: 5,
      PERMANENT_FAILURE: 6,
      CANCELLED: 7,
      UNCERTAIN: 8,
      DEAD_LETTERED: 9,
    });
    expect(STATE_NAMES).toEqual(Object.keys(STATE));
    expect(STATE_TABLE.map((row) => [row.name, row.code])).toEqual(Object.entries(STATE));
  });

  it.each<[string, Procedure, readonly number[]]>([
    ['std.jobs.state.is_valid', stateIsValid, STATES],
    ['std.jobs.state.is_terminal', stateIsTerminal, [4, 6, 7, 9]],
    ['std.jobs.state.holds_lease', stateHoldsLease, [2, 3]],
    ['std.jobs.state.awaits_worker', stateAwaitsWorker, [0, 1]],
    ['std.jobs.cancel.is_legal', cancelIsLegal, [0, 1, 2, 5]],
  ])('%s holds for exactly its states and for no code outside', (_name, predicate, holding) => {
    expect(STATES.filter((state) => call(predicate, [state]) === true)).toEqual(holding);
    for (const state of [...STATES, ...NO_STATES, ...NOT_EVEN_NUMBERS]) {
      expect(call(predicate, [state])).toBe(holding.includes(state as number));
    }
  });

  it('an uncertain job is not terminal: it never resolves itself', () => {
    expect(stateIsTerminal(STATE.UNCERTAIN)).toBe(false);
  });

  it('the table agrees with the predicates and lets nothing leave a terminal state', () => {
    for (const row of STATE_TABLE) {
      expect(row.terminal).toBe(stateIsTerminal(row.code));
      expect(row.leaves).toEqual([...new Set(row.leaves)].sort((a, b) => a - b));
      expect(row.leaves).not.toContain(row.code);
      expect(row.leaves).not.toContain(STATE.RETRYABLE_FAILURE);
      const waysOut = row.leaves.length > 0;
      expect(waysOut).toBe(!row.terminal && row.code !== STATE.RETRYABLE_FAILURE);
      expect(row.meaning).toMatch(/^[A-Z][^.]+\.$/);
    }
  });

  it('only a lease can be begun, and only a begun attempt can succeed, fail or be lost', () => {
    const into = (state: number): number[] =>
      STATE_TABLE.filter((row) => row.leaves.some((to) => to === state)).map((row) => row.code);
    expect(into(STATE.LEASED)).toEqual([STATE.PENDING, STATE.SCHEDULED]);
    expect(into(STATE.RUNNING)).toEqual([STATE.LEASED]);
    expect(into(STATE.UNCERTAIN)).toEqual([STATE.RUNNING]);
    expect(into(STATE.SUCCEEDED)).toEqual([STATE.RUNNING, STATE.UNCERTAIN]);
    expect(into(STATE.PERMANENT_FAILURE)).toEqual([STATE.RUNNING, STATE.UNCERTAIN]);
    expect(into(STATE.DEAD_LETTERED)).not.toContain(STATE.UNCERTAIN);
  });
});

describe('std.jobs.lease', () => {
  it('std.jobs.lease.is_current: a lease that expires exactly now is no longer current', () => {
    expect(leaseIsCurrent(7, 7, 99, 100)).toBe(true);
    expect(leaseIsCurrent(7, 7, 100, 100)).toBe(false);
    expect(leaseIsCurrent(7, 7, 101, 100)).toBe(false);
    expect(leaseIsCurrent(0, 0, 0, 1)).toBe(true);
    expect(leaseIsCurrent(TICK_MAX, TICK_MAX, TICK_MAX - 1, TICK_MAX)).toBe(true);
    expect(leaseIsCurrent(TICK_MAX, TICK_MAX, TICK_MAX, TICK_MAX)).toBe(false);
  });

  it('std.jobs.lease.is_current: a lease of another generation is never current, older or newer', () => {
    expect(leaseIsCurrent(6, 7, 99, 100)).toBe(false);
    expect(leaseIsCurrent(8, 7, 99, 100)).toBe(false);
    expect(leaseIsCurrent(TICK_MAX - 1, TICK_MAX, 99, 100)).toBe(false);
  });

  it('std.jobs.lease.is_expired: the deadline itself is too late', () => {
    expect(leaseIsExpired(99, 100)).toBe(false);
    expect(leaseIsExpired(100, 100)).toBe(true);
    expect(leaseIsExpired(101, 100)).toBe(true);
    expect(leaseIsExpired(0, 0)).toBe(true);
  });

  it('no lease is both current and expired, and one of the right generation is one of the two', () => {
    fc.assert(
      fc.property(anyTick, anyTick, anyTick, (generation, now, deadline) => {
        expect(leaseIsExpired(now, deadline)).toBe(now >= deadline);
        expect(leaseIsCurrent(generation, generation, now, deadline)).toBe(now < deadline);
      }),
    );
  });

  it('generations that are none do not match, not even each other', () => {
    for (const none of OUTSIDE) expect(leaseIsCurrent(none, none, 99, 100)).toBe(false);
  });
});

describe('std.jobs: legality gates', () => {
  it('std.jobs.claim.is_legal: nothing but a pending or a due scheduled job can be claimed', () => {
    const claimable = (isDue: boolean): number[] =>
      [...STATES, ...NO_STATES].filter((state) => claimIsLegal(state, isDue));
    expect(claimable(true)).toEqual([STATE.PENDING, STATE.SCHEDULED]);
    expect(claimable(false)).toEqual([STATE.PENDING]);
  });

  it.each<[string, typeof heartbeatIsLegal, readonly number[]]>([
    ['std.jobs.begin_execution.is_legal', beginExecutionIsLegal, [STATE.LEASED]],
    ['std.jobs.heartbeat.is_legal', heartbeatIsLegal, [STATE.LEASED, STATE.RUNNING]],
    ['std.jobs.completion.is_legal', completionIsLegal, [STATE.RUNNING]],
  ])('%s: a stale or an ended lease opens it in no state', (_name, gate, states) => {
    const open = (lease: [number, number, number, number]): number[] =>
      [...STATES, ...NO_STATES].filter((state) => gate(state, ...lease));
    expect(open([7, 7, 99, 100])).toEqual(states);
    expect(open([7, 7, 100, 100])).toEqual([]);
    expect(open([7, 7, 101, 100])).toEqual([]);
    expect(open([6, 7, 99, 100])).toEqual([]);
    expect(open([8, 7, 99, 100])).toEqual([]);
  });
});

describe('std.jobs.outcome, std.jobs.attempt, std.jobs.retry', () => {
  it('std.jobs.outcome.kind_is_valid: four kinds and no more', () => {
    expect(OUTCOME).toEqual({ SUCCESS: 0, RETRYABLE: 1, PERMANENT: 2, UNCERTAIN: 3 });
    expect(U8.filter(outcomeKindIsValid)).toEqual([0, 1, 2, 3]);
    for (const none of [...OUTSIDE, ...NOT_EVEN_NUMBERS]) expect(outcomeKindIsValid(none)).toBe(false);
  });

  it('std.jobs.attempt.is_within_ceiling: the last attempt is within, the next is not', () => {
    expect(differing(attemptIsWithinCeiling, (attempt, ceiling) => attempt <= ceiling)).toEqual([]);
    expect(attemptIsWithinCeiling(TICK_MAX, TICK_MAX)).toBe(true);
    expect(attemptIsWithinCeiling(TICK_MAX, TICK_MAX - 1)).toBe(false);
  });

  it('std.jobs.retry.should_dead_letter: reaching the ceiling is enough', () => {
    expect(differing(retryShouldDeadLetter, (attempt, ceiling) => attempt >= ceiling)).toEqual([]);
    expect(retryShouldDeadLetter(TICK_MAX - 1, TICK_MAX)).toBe(false);
    expect(retryShouldDeadLetter(TICK_MAX, TICK_MAX)).toBe(true);
  });

  it.each([
    [OUTCOME.SUCCESS, [STATE.SUCCEEDED, STATE.SUCCEEDED, STATE.SUCCEEDED]],
    [OUTCOME.RETRYABLE, [STATE.RETRYABLE_FAILURE, STATE.DEAD_LETTERED, STATE.DEAD_LETTERED]],
    [OUTCOME.PERMANENT, [STATE.PERMANENT_FAILURE, STATE.PERMANENT_FAILURE, STATE.PERMANENT_FAILURE]],
    [OUTCOME.UNCERTAIN, [STATE.UNCERTAIN, STATE.UNCERTAIN, STATE.UNCERTAIN]],
  ])('std.jobs.retry.next_state_after_outcome: kind %i below, at and above the ceiling', (kind, next) => {
    expect([4, 5, 6].map((attempt) => retryNextStateAfterOutcome(kind, attempt, 5))).toEqual(next);
  });

  it('std.jobs.retry.next_state_after_outcome: a kind that is none is a permanent failure, never a retry', () => {
    for (const none of [...U8.slice(4), ...OUTSIDE, ...NOT_EVEN_NUMBERS]) {
      expect(call(retryNextStateAfterOutcome, [none, 1, 5])).toBe(STATE.PERMANENT_FAILURE);
    }
  });

  it('std.jobs.retry.next_state_after_outcome: a broken counter buys no retry and hides no doubt', () => {
    for (const none of [...OUTSIDE, ...NOT_EVEN_NUMBERS]) {
      for (const counters of [
        [none, 5],
        [1, none],
      ]) {
        expect(call(retryNextStateAfterOutcome, [OUTCOME.RETRYABLE, ...counters])).toBe(STATE.DEAD_LETTERED);
        expect(call(retryNextStateAfterOutcome, [OUTCOME.UNCERTAIN, ...counters])).toBe(STATE.UNCERTAIN);
        expect(call(retryNextStateAfterOutcome, [OUTCOME.SUCCESS, ...counters])).toBe(STATE.SUCCEEDED);
      }
    }
  });

  it.each([
    [0, 0, 0, 0],
    [0, 5, 1000, 5],
    [0, 5000, 1000, 1000],
    [0, 1, 9007199254740991, 1],
    [0, 3, 100, 3],
    [1, 0, 0, 0],
    [1, 5, 1000, 10],
    [1, 5000, 1000, 1000],
    [1, 1, 9007199254740991, 2],
    [1, 3, 100, 6],
    [2, 0, 0, 0],
    [2, 5, 1000, 20],
    [2, 5000, 1000, 1000],
    [2, 1, 9007199254740991, 4],
    [2, 3, 100, 12],
    [3, 0, 0, 0],
    [3, 5, 1000, 40],
    [3, 5000, 1000, 1000],
    [3, 1, 9007199254740991, 8],
    [3, 3, 100, 24],
    [10, 0, 0, 0],
    [10, 5, 1000, 1000],
    [10, 5000, 1000, 1000],
    [10, 1, 9007199254740991, 1024],
    [10, 3, 100, 100],
    [63, 0, 0, 0],
    [63, 5, 1000, 1000],
    [63, 5000, 1000, 1000],
    [63, 1, 9007199254740991, 9007199254740991],
    [63, 3, 100, 100],
    [64, 0, 0, 0],
    [64, 5, 1000, 1000],
    [64, 5000, 1000, 1000],
    [64, 1, 9007199254740991, 9007199254740991],
    [64, 3, 100, 100],
    [255, 0, 0, 0],
    [255, 5, 1000, 1000],
    [255, 5000, 1000, 1000],
    [255, 1, 9007199254740991, 9007199254740991],
    [255, 3, 100, 100],
    // Nothing doubled is nothing, whatever the cap.
    [0, 0, 1000, 0],
    [255, 0, 1000, 0],
    // The last doubling that a double holds, and the first that meets the cap.
    [52, 1, 9007199254740991, 4503599627370496],
    [53, 1, 9007199254740991, 9007199254740991],
    [52, 2, 9007199254740991, 9007199254740991],
    // A cap reached exactly, and missed by one on either side.
    [3, 125, 1000, 1000],
    [3, 125, 1001, 1000],
    [3, 125, 999, 999],
    [9007199254740991, 1, 1000, 1000],
    [9007199254740991, 0, 1000, 0],
  ])('std.jobs.retry.backoff_ticks(%i, %i, %i) is %i', (attempt, base, max, ticks) => {
    expect(retryBackoffTicks(attempt, base, max)).toBe(ticks);
  });

  it('std.jobs.retry.backoff_ticks: no counter makes a wait longer than the cap or shorter than exact', () => {
    fc.assert(
      fc.property(fc.oneof(fc.nat(300), anyTick), anyTick, anyTick, (attempt, base, max) => {
        const doubled = BigInt(base) * 2n ** BigInt(Math.min(attempt, 300));
        const exact = doubled < BigInt(max) ? doubled : BigInt(max);
        expect(retryBackoffTicks(attempt, base, max)).toBe(Number(exact));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('std.jobs.idempotency, std.jobs.payload, std.jobs.revision', () => {
  const other: readonly Uint8Array[] = [
    bytes(),
    bytes(1, 2),
    bytes(1, 2, 4),
    bytes(0, 2, 3),
    bytes(1, 2, 3, 0),
  ];

  it('std.jobs.idempotency.enqueue_outcome: other content under a key is a conflict, never a merge', () => {
    expect(ENQUEUE).toEqual({ FRESH: 0, DUPLICATE: 1, CONFLICT: 2 });
    expect(idempotencyEnqueueOutcome(true, bytes(1, 2, 3), bytes(1, 2, 3))).toBe(ENQUEUE.DUPLICATE);
    expect(idempotencyEnqueueOutcome(true, bytes(), bytes())).toBe(ENQUEUE.DUPLICATE);
    for (const descriptor of other) {
      expect(idempotencyEnqueueOutcome(true, bytes(1, 2, 3), descriptor)).toBe(ENQUEUE.CONFLICT);
      expect(idempotencyEnqueueOutcome(true, descriptor, bytes(1, 2, 3))).toBe(ENQUEUE.CONFLICT);
    }
  });

  it('std.jobs.idempotency.enqueue_outcome: a key nobody holds is fresh, whatever the descriptors', () => {
    for (const descriptor of [bytes(1, 2, 3), ...other]) {
      expect(idempotencyEnqueueOutcome(false, bytes(1, 2, 3), descriptor)).toBe(ENQUEUE.FRESH);
    }
  });

  it('std.jobs.payload.schema_is_compatible: one differing byte is another schema', () => {
    expect(payloadSchemaIsCompatible(bytes(1, 2, 3), bytes(1, 2, 3))).toBe(true);
    for (const descriptor of other) {
      expect(payloadSchemaIsCompatible(bytes(1, 2, 3), descriptor)).toBe(false);
      expect(payloadSchemaIsCompatible(descriptor, bytes(1, 2, 3))).toBe(false);
    }
  });

  it('byte strings are equal exactly when every byte is, wherever in memory they lie', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 6 }), fc.uint8Array({ maxLength: 6 }), (a, b) => {
        expect(bytesEqual(a, b)).toBe(a.join() === b.join());
        expect(bytesEqual(a, bytes(9, ...a, 9).subarray(1, -1))).toBe(true);
      }),
    );
  });

  it('std.jobs.revision.is_known: revision 0 and newer revisions are unknown, in all of 0 to 255', () => {
    expect(differing(revisionIsKnown, (bound, current) => bound >= 1 && bound <= current)).toEqual([]);
  });

  it('std.jobs.revision.requires_refusal: no revision is both known and refused, or neither', () => {
    expect(differing(revisionRequiresRefusal, (bound, current) => !revisionIsKnown(bound, current))).toEqual(
      [],
    );
    expect(revisionRequiresRefusal(3, 3)).toBe(false);
    expect(revisionRequiresRefusal(4, 3)).toBe(true);
  });
});

describe('std.jobs.schedule', () => {
  it('std.jobs.schedule.is_due: the start tick itself is due', () => {
    expect(scheduleIsDue(99, 100)).toBe(false);
    expect(scheduleIsDue(100, 100)).toBe(true);
    expect(scheduleIsDue(101, 100)).toBe(true);
    expect(scheduleIsDue(0, 0)).toBe(true);
    expect(scheduleIsDue(TICK_MAX - 1, TICK_MAX)).toBe(false);
  });

  it.each([
    [99, 100, 10, 0],
    [100, 100, 10, 0],
    [109, 100, 10, 0],
    [110, 100, 10, 1],
    [119, 100, 10, 1],
    [120, 100, 10, 2],
    [0, 0, 1, 0],
    [0, TICK_MAX, 1, 0],
    [TICK_MAX, 0, 1, TICK_MAX],
    [TICK_MAX, 0, TICK_MAX, 1],
    [TICK_MAX, 1, TICK_MAX, 0],
  ])('std.jobs.schedule.missed_windows(%i, %i, %i) is %i', (now, nextRun, interval, missed) => {
    expect(scheduleMissedWindows(now, nextRun, interval)).toBe(missed);
  });

  it.each([
    [100, 100, 10, 100, 110],
    [135, 100, 10, 100, 140],
    [999, 100, 10, 2, 130],
    [99, 100, 10, 5, 110],
    [0, 0, 1, 0, 1],
    // Without catch-up each step is one interval, however late it is.
    [999, 100, 10, 0, 110],
    // The last slot there is, and slots of which there is none.
    [0, TICK_MAX - 1, 1, 0, TICK_MAX],
    [0, 0, TICK_MAX, 0, TICK_MAX],
    [TICK_MAX - 1, 0, 1, TICK_MAX, TICK_MAX],
    [0, TICK_MAX, 1, 0, 'tick_overflow'],
    [0, 1, TICK_MAX, 0, 'tick_overflow'],
    [TICK_MAX, 0, 1, TICK_MAX, 'tick_overflow'],
    [TICK_MAX, 0, TICK_MAX, TICK_MAX, 'tick_overflow'],
    [TICK_MAX, 0, TICK_MAX, 0, TICK_MAX],
  ] as const)(
    'std.jobs.schedule.catch_up_next_run(%i, %i, %i, %i) is %s',
    (now, nextRun, interval, max, slot) => {
      expect(scheduleCatchUpNextRun(now, nextRun, interval, max)).toBe(slot);
    },
  );

  it('std.jobs.schedule.catch_up_next_run: no slot is rounded or wrapped, none bursts and none falls behind', () => {
    fc.assert(
      fc.property(anyTick, anyTick, anyTick, anyTick, (now, nextRun, interval, maxCatchUp) => {
        fc.pre(interval > 0);
        const late = now > nextRun ? BigInt(now - nextRun) / BigInt(interval) : 0n;
        expect(scheduleMissedWindows(now, nextRun, interval)).toBe(Number(late));
        const skipped = late < BigInt(maxCatchUp) ? late : BigInt(maxCatchUp);
        const exact = BigInt(nextRun) + BigInt(interval) * (skipped + 1n);
        const expected = exact > BigInt(TICK_MAX) ? 'tick_overflow' : Number(exact);
        expect(scheduleCatchUpNextRun(now, nextRun, interval, maxCatchUp)).toBe(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  it('std.jobs.schedule.recurrence_is_exhausted: the last occurrence ends the series', () => {
    expect(differing(scheduleRecurrenceIsExhausted, (run, max) => run >= max)).toEqual([]);
    expect(scheduleRecurrenceIsExhausted(TICK_MAX - 1, TICK_MAX)).toBe(false);
  });
});

describe('std.jobs.cancel, std.jobs.compensation', () => {
  it('std.jobs.cancel.next_state: a cancel that is too late leaves the state as it is', () => {
    expect(STATES.map(cancelNextState)).toEqual([
      STATE.CANCELLED,
      STATE.CANCELLED,
      STATE.CANCELLED,
      STATE.RUNNING,
      STATE.SUCCEEDED,
      STATE.CANCELLED,
      STATE.PERMANENT_FAILURE,
      STATE.CANCELLED,
      STATE.UNCERTAIN,
      STATE.DEAD_LETTERED,
    ]);
  });

  it('std.jobs.cancel.next_state: a code that never was a state ends in the sink', () => {
    for (const none of [...NO_STATES, ...NOT_EVEN_NUMBERS]) {
      expect(call(cancelNextState, [none])).toBe(STATE.PERMANENT_FAILURE);
    }
  });

  it('std.jobs.compensation.is_required: only what ran and ended badly is compensated', () => {
    const required = (everRan: boolean): number[] =>
      [...STATES, ...NO_STATES].filter((state) => compensationIsRequired(everRan, state));
    expect(required(true)).toEqual([STATE.PERMANENT_FAILURE, STATE.CANCELLED]);
    expect(required(false)).toEqual([]);
  });
});

describe('std.jobs.uncertain', () => {
  it('std.jobs.uncertain.retry_is_permitted: never without idempotency, never past the ceiling', () => {
    const permitted = (idempotent: boolean) => (attempt: number, ceiling: number) =>
      uncertainRetryIsPermitted(idempotent, attempt, ceiling);
    expect(differing(permitted(true), (attempt, ceiling) => attempt < ceiling)).toEqual([]);
    expect(differing(permitted(false), () => false)).toEqual([]);
  });

  it.each([
    [DECISION.SUCCEEDED, STATE.SUCCEEDED, STATE.SUCCEEDED, STATE.SUCCEEDED],
    [DECISION.FAILED, STATE.PERMANENT_FAILURE, STATE.PERMANENT_FAILURE, STATE.PERMANENT_FAILURE],
    [DECISION.RETRY, STATE.RETRYABLE_FAILURE, STATE.UNCERTAIN, STATE.UNCERTAIN],
    [3, STATE.UNCERTAIN, STATE.UNCERTAIN, STATE.UNCERTAIN],
    [255, STATE.UNCERTAIN, STATE.UNCERTAIN, STATE.UNCERTAIN],
  ])(
    'std.jobs.uncertain.reconcile: decision %i never runs again what may not',
    (decision, safe, last, unsafe) => {
      expect(DECISION).toEqual({ SUCCEEDED: 0, FAILED: 1, RETRY: 2 });
      expect(uncertainReconcile(decision, true, 4, 5)).toBe(safe);
      expect(uncertainReconcile(decision, true, 5, 5)).toBe(last);
      expect(uncertainReconcile(decision, false, 4, 5)).toBe(unsafe);
      expect(uncertainReconcile(decision, false, 5, 5)).toBe(unsafe);
    },
  );

  it('std.jobs.uncertain.reconcile: a broken counter undoes no decision that needs none', () => {
    for (const none of OUTSIDE) {
      expect(uncertainReconcile(DECISION.SUCCEEDED, true, none, none)).toBe(STATE.SUCCEEDED);
      expect(uncertainReconcile(DECISION.FAILED, true, none, none)).toBe(STATE.PERMANENT_FAILURE);
    }
  });
});

describe('ticks', () => {
  it('a sum past the end of time is refused, and the last tick is not', () => {
    expect(addTicks(1_000, 500)).toBe(1_500);
    expect(addTicks(TICK_MAX, 0)).toBe(TICK_MAX);
    expect(addTicks(TICK_MAX - 1, 1)).toBe(TICK_MAX);
    expect(addTicks(TICK_MAX, 1)).toBe('tick_overflow');
    expect(addTicks(1, TICK_MAX)).toBe('tick_overflow');
    expect(addTicks(TICK_MAX, TICK_MAX)).toBe('tick_overflow');
  });

  it('only whole numbers from 0 to 2^53-1 are ticks', () => {
    expect(TICK_MAX).toBe(9007199254740991);
    for (const tick of [0, 1, TICK_MAX]) expect(isTick(tick)).toBe(true);
    for (const none of [...OUTSIDE, ...NOT_EVEN_NUMBERS]) {
      expect(isTick(none)).toBe(false);
      expect(areTicks(0, none)).toBe(false);
      expect(areTicks(none, 0)).toBe(false);
    }
    expect(areTicks(0, TICK_MAX)).toBe(true);
  });
});

/** What each procedure grants for good arguments, and what it answers when any one number of them is out of its domain. */
const DOMAINS: readonly [
  name: string,
  Procedure,
  args: readonly unknown[],
  granted: unknown,
  refused: unknown,
][] = [
  ['std.jobs.lease.is_current', leaseIsCurrent, [7, 7, 3, 100], true, false],
  ['std.jobs.lease.is_expired', leaseIsExpired, [3, 100], false, true],
  ['std.jobs.claim.is_legal', claimIsLegal, [0, true], true, false],
  ['std.jobs.begin_execution.is_legal', beginExecutionIsLegal, [2, 7, 7, 3, 100], true, false],
  ['std.jobs.heartbeat.is_legal', heartbeatIsLegal, [3, 7, 7, 3, 100], true, false],
  ['std.jobs.completion.is_legal', completionIsLegal, [3, 7, 7, 3, 100], true, false],
  ['std.jobs.attempt.is_within_ceiling', attemptIsWithinCeiling, [3, 5], true, false],
  ['std.jobs.retry.should_dead_letter', retryShouldDeadLetter, [3, 5], false, true],
  ['std.jobs.retry.backoff_ticks', retryBackoffTicks, [3, 5, 1_000], 40, 'tick_overflow'],
  ['std.jobs.revision.is_known', revisionIsKnown, [3, 3], true, false],
  ['std.jobs.revision.requires_refusal', revisionRequiresRefusal, [3, 3], false, true],
  ['std.jobs.schedule.is_due', scheduleIsDue, [100, 3], true, false],
  ['std.jobs.schedule.missed_windows', scheduleMissedWindows, [135, 100, 10], 3, 'tick_overflow'],
  ['std.jobs.schedule.catch_up_next_run', scheduleCatchUpNextRun, [135, 100, 10, 9], 140, 'tick_overflow'],
  ['std.jobs.schedule.recurrence_is_exhausted', scheduleRecurrenceIsExhausted, [3, 5], false, true],
  ['std.jobs.compensation.is_required', compensationIsRequired, [true, 6], true, false],
  ['std.jobs.uncertain.retry_is_permitted', uncertainRetryIsPermitted, [true, 3, 5], true, false],
  ['std.jobs.uncertain.reconcile', uncertainReconcile, [2, true, 3, 5], 5, 8],
  ['addTicks', addTicks, [3, 5], 8, 'tick_overflow'],
];

describe('outside the domain', () => {
  it.each(DOMAINS)(
    '%s grants nothing to a number that is none',
    (_name, procedure, args, granted, refused) => {
      expect(call(procedure, args)).toBe(granted);
      const numbers = args.flatMap((arg, position) => (typeof arg === 'number' ? [position] : []));
      for (const position of numbers) {
        const answers = [...OUTSIDE, ...NOT_EVEN_NUMBERS].map((none) =>
          call(procedure, args.with(position, none)),
        );
        expect(new Set(answers), `argument ${position}`).toEqual(new Set([refused]));
      }
    },
  );

  it('an interval of 0 is refused, not divided by', () => {
    expect(scheduleMissedWindows(135, 100, 0)).toBe('tick_overflow');
    expect(scheduleMissedWindows(99, 100, 0)).toBe('tick_overflow');
    expect(scheduleCatchUpNextRun(135, 100, 0, 9)).toBe('tick_overflow');
  });
});
