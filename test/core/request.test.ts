/** Reading requests: a field out of its bound is named and refused, never clipped, and what is unknown is never ignored. */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/core/limits.ts';
import { type JobRequest, nameProblem, plainFields, readRequest } from '../../src/core/request.ts';

const GOOD = { kind: 'mail', revision: 1, payload: { to: 'bob' }, idempotent: true } as const;

function asked(changes: Partial<JobRequest> = {}) {
  const read = readRequest({ ...GOOD, ...changes });
  if (!read.ok) throw new Error(`${read.problem.field} ${read.problem.problem}`);
  return read.asked;
}

function problemOf(changes: Readonly<Record<string, unknown>>): string {
  const read = readRequest({ ...GOOD, ...changes });
  return read.ok ? 'no problem' : `${read.problem.field} ${read.problem.problem}`;
}

test('a request that names nothing but what it must takes every default', () => {
  expect(asked()).toEqual({
    kind: 'mail',
    revision: 1,
    payload: '{"to":"bob"}',
    idempotent: true,
    queue: 'default',
    orderingKey: null,
    idempotencyKey: null,
    requestId: null,
    priority: 0,
    startAt: null,
    delayMs: 0,
    deadline: null,
    maxAttempts: 5,
    backoffBaseMs: 1_000,
    backoffMaxMs: 300_000,
    reconcileAfterMs: 30_000,
    acceptLateReports: true,
    reconciles: false,
    compensates: false,
    requiresEffect: null,
    recurrence: null,
  });
});

test('null means the default, and everything that may be named is kept as it was named', () => {
  const named = {
    queue: 'slow',
    orderingKey: 'bob',
    idempotencyKey: 'invoice-17',
    requestId: 'request-1',
    priority: -1_000,
    startAt: 0,
    deadline: limits.tickMax,
    maxAttempts: 10_000,
    backoffBaseMs: 0,
    backoffMaxMs: 0,
    reconcileAfterMs: 0,
    acceptLateReports: false,
    reconciles: true,
    compensates: true,
    requiresEffect: 'charge',
  };
  expect(asked(named)).toMatchObject(named);
  const absent = Object.fromEntries(
    [...Object.keys(named), 'delayMs', 'recurrence'].map((name) => [name, null]),
  );
  expect(asked(absent)).toEqual(asked());
  const recurrence = { intervalMs: 1, maxOccurrences: 1, maxCatchUp: 0 };
  expect(asked({ recurrence })).toMatchObject({ recurrence });
});

describe('what is no request is refused', () => {
  test('when it is no plain object', () => {
    const strange = [undefined, null, 3, 'mail', [], new Map(), () => GOOD, new (class Job {})()];
    for (const value of strange) {
      expect(readRequest(value)).toEqual({
        ok: false,
        problem: { field: 'job', problem: 'must be a plain object' },
      });
    }
    expect(readRequest(Object.assign(Object.create(null), GOOD)).ok).toBe(true);
  });

  test('when it has a field that does not exist: a misspelt option must not be without effect', () => {
    expect(problemOf({ maxAttempt: 1 })).toBe('maxAttempt is not an option');
    expect(problemOf(JSON.parse('{"__proto__": 1}') as Record<string, unknown>)).toBe(
      '__proto__ is not an option',
    );
  });

  test('when a field that must be there is not', () => {
    for (const field of ['kind', 'revision', 'payload', 'idempotent']) {
      expect(problemOf({ [field]: undefined })).toMatch(new RegExp(`^${field} must `));
    }
    expect(problemOf({ kind: null })).toMatch(/^kind must/);
    expect(problemOf({ payload: null })).toBe('no problem');
  });

  test('by its first problem alone', () => {
    expect(problemOf({ kind: '', revision: 0, idempotent: 'yes', nonsense: 1 })).toBe(
      'nonsense is not an option',
    );
    expect(problemOf({ kind: '', revision: 0 })).toMatch(/^kind /);
  });
});

describe('every bound', () => {
  const wholes = [
    ['revision', limits.revisionMin, limits.revisionMax],
    ['priority', limits.priorityMin, limits.priorityMax],
    ['delayMs', 0, limits.tickMax],
    ['maxAttempts', 1, 10_000],
    ['backoffMaxMs', limits.backoffBaseMsDefault, limits.backoffMsMax],
    ['reconcileAfterMs', 0, limits.reconcileAfterMsMax],
    ['startAt', 0, limits.tickMax],
    ['deadline', 0, limits.tickMax],
  ] as const;

  test.each(wholes)(
    'of %s is inclusive, and nothing past it or beside a whole number is taken',
    (field, min, max) => {
      expect(asked({ [field]: min })).toMatchObject({ [field]: min });
      expect(asked({ [field]: max })).toMatchObject({ [field]: max });
      const bad = [max + 1, min + 0.5, Number.NaN, Number.POSITIVE_INFINITY, `${min}`, 1n, true, {}];
      const below = field === 'backoffMaxMs' ? [-1] : [min - 1];
      for (const value of [...bad, ...below]) {
        expect(problemOf({ [field]: value })).toMatch(new RegExp(`^${field} must be a whole number`));
      }
    },
  );

  test('of the base of the backoff is its cap', () => {
    expect(asked({ backoffBaseMs: 300_000 })).toMatchObject({ backoffBaseMs: 300_000 });
    expect(problemOf({ backoffBaseMs: 300_001 })).toBe(
      'backoffBaseMs must not be above backoffMaxMs, which is 300000',
    );
    expect(problemOf({ backoffBaseMs: limits.backoffMsMax + 1 })).toMatch(/whole number from 0/);
  });

  const names = [
    ['kind', limits.kindBytesMax],
    ['queue', limits.queueBytesMax],
    ['orderingKey', limits.orderingKeyBytesMax],
    ['idempotencyKey', limits.idempotencyKeyBytesMax],
    ['requestId', limits.requestIdBytesMax],
    ['requiresEffect', limits.effectKeyBytesMax],
  ] as const;

  test.each(names)('of %s is counted in bytes of UTF-8', (field, max) => {
    const full = 'ä'.repeat(max / 2);
    expect(asked({ [field]: full })).toMatchObject({ [field]: full });
    for (const value of [`${full}a`, 'a'.repeat(max + 1), '', 'a\nb', 'a\u0000', '\u007f', '\ud800', 7, {}]) {
      expect(problemOf({ [field]: value })).toMatch(
        new RegExp(`^${field} must be text of 1 to ${max} UTF-8 bytes`),
      );
    }
  });

  test.each(['idempotent', 'acceptLateReports', 'reconciles', 'compensates'])(
    'of %s is true or false',
    (field) => {
      for (const value of [0, 1, 'true', {}])
        expect(problemOf({ [field]: value })).toBe(`${field} must be true or false`);
      expect(asked({ [field]: false })).toMatchObject({ [field]: false });
    },
  );

  test('of a payload is named with the place that broke it', () => {
    expect(problemOf({ payload: { a: [1, undefined] } })).toBe(
      'payload must not contain undefined at $.a[1]',
    );
    const large = 'a'.repeat(limits.payloadBytesMax - 2);
    expect(asked({ payload: large }).payload).toHaveLength(limits.payloadBytesMax);
    expect(problemOf({ payload: `${large}a` })).toMatch(/^payload must not be larger than 1048576 bytes/);
    let deep: unknown = 0;
    for (let depth = 0; depth < limits.payloadDepthMax; depth += 1) deep = [deep];
    expect(problemOf({ payload: deep })).toBe('no problem');
    expect(problemOf({ payload: [deep] })).toMatch(/^payload must not nest deeper than 64/);
  });
});

describe('a recurrence', () => {
  const good = { intervalMs: 1_000, maxOccurrences: 3, maxCatchUp: 2 };

  test('is bounded in each of its fields', () => {
    for (const [field, max] of [
      ['intervalMs', limits.recurrenceIntervalMsMax],
      ['maxOccurrences', limits.maxOccurrencesMax],
      ['maxCatchUp', limits.maxCatchUpMax],
    ] as const) {
      expect(problemOf({ recurrence: { ...good, [field]: max } })).toBe('no problem');
      for (const value of [max + 1, -1, 0.5, undefined, null, '1']) {
        const problem = problemOf({ recurrence: { ...good, [field]: value } });
        expect(problem).toMatch(new RegExp(`^recurrence\\.${field} must be a whole number`));
      }
    }
    expect(problemOf({ recurrence: { ...good, intervalMs: 0 } })).toMatch(/^recurrence\.intervalMs/);
    expect(problemOf({ recurrence: { ...good, maxOccurrences: 0 } })).toMatch(/^recurrence\.maxOccurrences/);
    expect(problemOf({ recurrence: { ...good, maxCatchUp: 0 } })).toBe('no problem');
  });

  test('that is no plain object, or has fields that do not exist, is refused', () => {
    expect(problemOf({ recurrence: 1_000 })).toBe('recurrence must be a plain object');
    expect(problemOf({ recurrence: [] })).toBe('recurrence must be a plain object');
    expect(problemOf({ recurrence: { ...good, every: 1 } })).toBe('recurrence.every is not an option');
  });

  test('has no ordering key: it would hold its lane for ever', () => {
    expect(problemOf({ recurrence: good, orderingKey: 'bob' })).toMatch(/^orderingKey must not be given/);
  });
});

test('options that contradict each other are refused', () => {
  expect(problemOf({ startAt: 5, delayMs: 5 })).toBe('delayMs must not be given together with startAt');
  expect(problemOf({ startAt: 5, delayMs: 0 })).toBe('no problem');
  expect(problemOf({ idempotencyKey: 'custody:1:2:reconcile' })).toMatch(/reserved$/);
  expect(problemOf({ idempotencyKey: 'my-custody:1' })).toBe('no problem');
});

test('reading runs no code of the caller: accessors, symbols and proxies that throw are no plain fields', () => {
  let ran = 0;
  const accessor = Object.defineProperty({ ...GOOD }, 'priority', {
    enumerable: true,
    get: () => {
      ran += 1;
      return 1;
    },
  });
  expect(plainFields(accessor)).toBeNull();
  expect(ran).toBe(0);
  expect(plainFields({ [Symbol('kind')]: 1 })).toBeNull();
  const hostile = new Proxy(
    {},
    {
      getPrototypeOf: () => {
        throw new Error('no');
      },
    },
  );
  expect(plainFields(hostile)).toBeNull();
  const shifty = new Proxy({ a: 1 }, { getOwnPropertyDescriptor: () => undefined });
  expect(plainFields(shifty)).toBeNull();
  expect(plainFields({ a: 1 })).toEqual({ a: 1 });
});

test('a name is text that can be shown, whatever was given as one', () => {
  expect(nameProblem('déjà vu', 20)).toBeNull();
  for (const value of [undefined, null, 5, '', '\t', 'a'.repeat(21)])
    expect(nameProblem(value, 20)).not.toBeNull();
});
