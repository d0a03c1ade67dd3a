/** Admission: nothing is merged silently, nothing too late or too much gets in, and a refusal leaves no trace. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type AdmissionContext, admit, descriptorText, type KeyHolder } from '../../src/core/admission.ts';
import { canonicalJson } from '../../src/core/canonical.ts';
import { initialJob, type Submission } from '../../src/core/job.ts';
import { limits } from '../../src/core/limits.ts';
import { type Asked, type JobRequest, readRequest } from '../../src/core/request.ts';
import { STATE } from '../../src/core/states.ts';
import { T0 } from '../support/job-builders.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

function ask(changes: Partial<JobRequest> = {}): Asked {
  const read = readRequest({
    kind: 'mail',
    revision: 1,
    payload: { to: 'bob' },
    idempotent: true,
    ...changes,
  });
  if (!read.ok) throw new Error(`${read.problem.field} ${read.problem.problem}`);
  return read.asked;
}

function context(changes: Partial<AdmissionContext> = {}): AdmissionContext {
  const free = { keyHolder: null, unresolved: 0, maxUnresolved: null };
  return { now: T0, lineage: 'lineage-1', sha256, ...free, ...changes };
}

function created(changes: Partial<JobRequest> = {}, around: Partial<AdmissionContext> = {}): Submission {
  const admission = admit(ask(changes), context(around));
  if (admission.outcome !== 'created') throw new Error(JSON.stringify(admission));
  return admission.submission;
}

const holderOf = (submission: Submission): KeyHolder => {
  return { jobId: 41, descriptor: submission.descriptor, submission };
};
const refused = (code: string, jobId: number | null = null) => ({ outcome: 'refused', refused: code, jobId });

/** How long an attempt may last before its next slot is reckoned. */
const HUNDRED_YEARS_MS = 3_162_240_000_000;

describe('a job that is admitted', () => {
  test('holds what was asked, the digests of it and what admission alone knows', () => {
    const asked = ask({ priority: 3, orderingKey: 'bob', maxAttempts: 7, delayMs: 20 });
    const { payload: _payload, delayMs: _delayMs, ...policy } = asked;
    expect(admit(asked, context())).toEqual({
      outcome: 'created',
      submission: {
        ...policy,
        startAt: T0 + 20,
        payloadDigest: sha256('{"to":"bob"}'),
        descriptor: sha256(descriptorText(asked)),
        lineage: 'lineage-1',
        admittedAt: T0,
        maxDeliveries: 1_007,
        internal: null,
        inherited: null,
      },
    });
  });

  test('waits for the tick or the delay it named, and is due at once without', () => {
    expect(created().startAt).toBe(T0);
    expect(created({ delayMs: 9 }).startAt).toBe(T0 + 9);
    expect(created({ startAt: T0 + 5 }).startAt).toBe(T0 + 5);
    expect(initialJob(1, created({ startAt: 3 })).state).toBe(STATE.PENDING);
  });
});

describe('a key', () => {
  const key = { idempotencyKey: 'invoice-17' };

  test('used again with the same content is a duplicate, at full capacity and after the deadline too', () => {
    const around = {
      keyHolder: holderOf(created({ ...key, deadline: T0 + 5 })),
      unresolved: 9,
      maxUnresolved: 1,
    };
    const again = admit(ask({ ...key, deadline: T0 + 5 }), context({ ...around, now: T0 + 500 }));
    expect(again).toEqual({ outcome: 'duplicate', jobId: 41, ignored: [] });
  });

  test('used again with other content is a conflict that names the existing job', () => {
    const keyHolder = holderOf(created(key));
    const recurrence = { intervalMs: 5, maxOccurrences: 2, maxCatchUp: 1 };
    const others: Partial<JobRequest>[] = [
      { kind: 'sms' },
      { queue: 'slow' },
      { orderingKey: 'bob' },
      { payload: { to: 'bo' } },
      { recurrence },
      { recurrence, payload: null },
    ];
    for (const other of others) {
      expect(admit(ask({ ...key, ...other }), context({ keyHolder }))).toEqual(refused('conflict', 41));
    }
  });

  test('says which options of a duplicate differ and had no effect', () => {
    const ignored = (first: Partial<JobRequest>, second: Partial<JobRequest>) => {
      const admission = admit(
        ask({ ...key, ...second }),
        context({ keyHolder: holderOf(created({ ...key, ...first })) }),
      );
      return admission.outcome === 'duplicate' ? admission.ignored : admission;
    };
    expect(ignored({}, { priority: 1 })).toEqual(['priority']);
    expect(ignored({}, { delayMs: 1 })).toEqual(['delay']);
    expect(ignored({ delayMs: 5 }, { delayMs: 5 })).toEqual([]);
    expect(ignored({ delayMs: 5 }, { startAt: T0 + 5 })).toEqual([]);
    expect(ignored({ startAt: T0 + 5 }, { startAt: T0 + 6 })).toEqual(['delay']);
    expect(ignored({ deadline: T0 + 9 }, {})).toEqual(['deadline']);
    expect(ignored({}, { priority: 1, delayMs: 1, deadline: T0 + 9 })).toEqual([
      'priority',
      'delay',
      'deadline',
    ]);
    expect(ignored({}, { maxAttempts: 9, requestId: 'r' })).toEqual([]);
  });

  test('of a pruned job answers with its tombstone, and calls no option different', () => {
    const keyHolder = { jobId: 41, descriptor: created(key).descriptor, submission: null };
    const again = admit(ask({ ...key, priority: 9 }), context({ keyHolder }));
    expect(again).toEqual({ outcome: 'duplicate', jobId: 41, ignored: [] });
    expect(admit(ask({ ...key, payload: 0 }), context({ keyHolder }))).toEqual(refused('conflict', 41));
  });
});

describe('a job is not admitted', () => {
  test('on or after its deadline, or when it would start there', () => {
    const late = refused('deadline_passed');
    expect(admit(ask({ deadline: T0 }), context())).toEqual(late);
    expect(admit(ask({ deadline: T0, startAt: 1 }), context())).toEqual(late);
    expect(admit(ask({ deadline: T0 + 9, delayMs: 9 }), context())).toEqual(late);
    expect(admit(ask({ deadline: T0 + 9, startAt: T0 + 9 }), context())).toEqual(late);
    expect(created({ deadline: T0 + 9, delayMs: 8 }).deadline).toBe(T0 + 9);
    expect(created({ deadline: T0 + 1 }).startAt).toBe(T0);
  });

  test('at the bound of its queue, and the deadline is looked at before the bound', () => {
    const full = { unresolved: 5, maxUnresolved: 5 };
    expect(admit(ask(), context(full))).toEqual(refused('capacity_exceeded'));
    expect(admit(ask({ deadline: T0 }), context(full))).toEqual(refused('deadline_passed'));
    expect(created({}, { unresolved: 4, maxUnresolved: 5 }).queue).toBe('default');
    expect(admit(ask(), context({ unresolved: 0, maxUnresolved: 0 }))).toEqual(refused('capacity_exceeded'));
    expect(created({}, { unresolved: Number.NaN }).queue).toBe('default');
  });

  test('when its start would pass 2^53-1, and is admitted for the last tick', () => {
    const around = { now: limits.tickMax - 5 };
    expect(created({ delayMs: 5 }, around).startAt).toBe(limits.tickMax);
    expect(admit(ask({ delayMs: 6 }), context(around))).toEqual({ outcome: 'overflow', field: 'delayMs' });
  });

  test('by a clock that gives no tick', () => {
    for (const now of [Number.NaN, -1, 0.5, Number.POSITIVE_INFINITY]) {
      expect(admit(ask({ startAt: 7 }), context({ now }))).toEqual({ outcome: 'overflow', field: 'now' });
    }
  });

  test('when the slot after its first could pass 2^53-1 within a hundred years of running', () => {
    const recurrence = { intervalMs: 1_000, maxOccurrences: 2, maxCatchUp: 4 };
    const last = limits.tickMax - 1_000 - HUNDRED_YEARS_MS;
    expect(created({ recurrence, startAt: last }).startAt).toBe(last);
    const over = admit(ask({ recurrence, startAt: last + 1 }), context());
    expect(over).toEqual({ outcome: 'overflow', field: 'recurrence' });
  });

  test('and a bound that skips whatever was missed is no overflow', () => {
    const recurrence = { intervalMs: 86_400_000, maxOccurrences: 2, maxCatchUp: 1_000_000_000 };
    expect(created({ recurrence }).recurrence).toEqual(recurrence);
  });
});

describe('the descriptor', () => {
  const texts = fc.option(fc.string({ minLength: 1 }));
  const parts = fc.record({
    kind: fc.string(),
    queue: fc.string(),
    orderingKey: texts,
    payload: fc.jsonValue(),
    recurrence: fc.option(
      fc.record(
        { intervalMs: fc.nat(), maxOccurrences: fc.nat(), maxCatchUp: fc.nat() },
        { noNullPrototype: true },
      ),
    ),
  });
  const bounds = { maxDepth: 99, maxBytes: 1e6 };

  test('is the canonical JSON of what makes a job the same, so that no two contents share one', () => {
    fc.assert(
      fc.property(parts, (part) => {
        const whole = canonicalJson(part, bounds);
        const payload = canonicalJson(part.payload, bounds);
        if (!whole.ok || !payload.ok) return;
        expect(descriptorText({ ...part, payload: payload.text })).toBe(whole.text);
      }),
    );
  });
});
