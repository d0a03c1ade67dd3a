import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { internalSubmission } from '../../src/core/admission.ts';
import { type InternalLink, initialJob, type Job, type Submission } from '../../src/core/job.ts';
import { decideRedrive } from '../../src/core/redrive.ts';
import { type Read, readJob, readSubmission, sha256Hex } from '../../src/evidence/index.ts';
import { submissionOf, submissions } from './histories.ts';

/** What is wrong, as text. */
function said(read: Read<unknown>): string {
  return read.ok ? 'read' : `${read.problem.field} ${read.problem.problem}`;
}

const clone = <Value>(value: Value): Value => JSON.parse(JSON.stringify(value)) as Value;

const plain = submissionOf();
const recurring = submissionOf({
  recurrence: { intervalMs: 50, maxOccurrences: 3, maxCatchUp: 2 },
  requiresEffect: 'row',
  deadline: 9_000,
});
const link: InternalLink = { purpose: 'reconcile', parentId: 7, parentToken: 12 };
const internal = internalSubmission(initialJob(7, plain), link, 2_000, {
  now: 1_500,
  lineage: 'lineage-2',
  sha256: sha256Hex,
});
const running: Job = {
  ...initialJob(7, plain),
  state: 3,
  version: 2,
  tick: 1_010,
  attempt: 1,
  delivery: 1,
  runs: 1,
  token: 12,
  lease: { token: 12, worker: 'w-1', expiresAt: 31_000, lengthMs: 30_000 },
  openSteps: [{ key: 'charge', idempotent: false }],
};
const dead: Job = {
  ...running,
  state: 9,
  version: 3,
  lease: null,
  answered: { token: 12, outcome: 'retryable', digest: sha256Hex('no') },
  cause: 'attempts_exhausted',
  endedAt: 1_010,
};
const uncertain: Job = {
  ...running,
  state: 8,
  lease: null,
  cause: 'lease_expired',
  testified: { token: 12, outcome: 'succeeded', digest: sha256Hex('yes') },
  testimonies: 1,
  cancelRequested: true,
};
const redriven = decideRedrive(
  dead,
  { deadline: 5_000, version: null },
  {
    now: 4_000,
    unresolved: 0,
    maxUnresolved: null,
    freshLineage: 'x',
    redrivenTo: null,
    compensation: 'none',
  },
);

describe('a submission that core makes is read as it is:', () => {
  test.each([
    ['admitted', plain],
    ['recurring', recurring],
    ['internal', internal],
    ['redriven', 'submission' in redriven ? redriven.submission : null],
  ])('%s', (_, submission) => {
    const given = clone(submission);
    const read = readSubmission(given);
    expect(read).toEqual({ ok: true, value: submission });
  });

  test('in many variants', () => {
    fc.assert(
      fc.property(submissions, (given) => {
        expect(readSubmission(clone(given))).toEqual({ ok: true, value: given });
      }),
    );
  });
});

describe('a job that can stand is read as it is:', () => {
  test.each([
    ['fresh', initialJob(7, plain)],
    ['recurring', initialJob(7, recurring)],
    ['running', running],
    ['dead', dead],
    ['uncertain', uncertain],
  ])('%s', (_, job) => {
    expect(readJob(clone(job))).toEqual({ ok: true, value: job });
  });
});

test('what was read shares nothing with what it was read from, either way', () => {
  const given = clone(uncertain);
  const read = readJob(given);
  (given.submission as { kind: string }).kind = 'other';
  (given.openSteps as unknown[]).push('more');
  (given.testified as { token: number }).token = 99;
  expect(read).toEqual({ ok: true, value: uncertain });
});

test('a negative zero is read as the zero that the chain knows', () => {
  const read = readSubmission({ ...plain, priority: -0, backoffBaseMs: -0 });
  expect(read.ok && Object.is(read.value.priority, 0) && Object.is(read.value.backoffBaseMs, 0)).toBe(true);
});

test('a field that is missing or unknown is refused by its path, at every depth', () => {
  const whole = { ...uncertain, submission: 'submission' in redriven ? redriven.submission : plain };
  const job = {
    ...clone(whole),
    submission: { ...clone(whole.submission), recurrence: clone(recurring.recurrence) },
  };
  const places: [string, object][] = [
    ['job', job],
    ['job.submission', job.submission],
    ['job.submission.recurrence', job.submission.recurrence ?? {}],
    ['job.submission.inherited', job.submission.inherited ?? {}],
    ['job.testified', job.testified ?? {}],
    ['job.openSteps[0]', job.openSteps[0] ?? {}],
  ];
  expect(said(readJob(job))).toContain('must'); // Only a relation is at fault: every field is well formed.
  for (const [path, record] of places) {
    const fields = record as Record<string, unknown>;
    for (const [field, value] of Object.entries(fields)) {
      delete fields[field];
      expect(said(readJob(job))).toBe(`${path}.${field} is missing`);
      fields[field] = value;
    }
    fields['extra'] = 1;
    expect(said(readJob(job))).toBe(`${path}.extra is not a field of it`);
    delete fields['extra'];
  }
});

describe('a submission is refused, naming field and bound, for', () => {
  const name = (bytes: number): string =>
    `must be text of 1 to ${bytes} UTF-8 bytes without control characters or lone surrogates`;
  const link0 = { purpose: 'reconcile', parentId: 1, parentToken: 1 };
  const inherited = { fromId: 3, occurrence: 0, requiredEffectCommitted: false, openSteps: [] };
  const step = { key: 'a', idempotent: true };
  test.each<[Record<string, unknown>, string]>([
    [{ kind: '' }, `submission.kind ${name(128)}`],
    [{ kind: 'x'.repeat(129) }, `submission.kind ${name(128)}`],
    [{ kind: 7 }, `submission.kind ${name(128)}`],
    [{ revision: 0 }, 'submission.revision must be a whole number from 1 to 255'],
    [{ revision: 256 }, 'submission.revision must be a whole number from 1 to 255'],
    [{ revision: 1.5 }, 'submission.revision must be a whole number from 1 to 255'],
    [{ queue: null }, `submission.queue ${name(128)}`],
    [{ orderingKey: 'x'.repeat(257) }, `submission.orderingKey ${name(256)}`],
    [{ payloadDigest: 'A'.repeat(64) }, 'submission.payloadDigest must be 64 lower-case hexadecimal digits'],
    [{ descriptor: 'a'.repeat(63) }, 'submission.descriptor must be 64 lower-case hexadecimal digits'],
    [{ requestId: '' }, `submission.requestId ${name(128)}`],
    [{ lineage: 'x'.repeat(65) }, `submission.lineage ${name(64)}`],
    [{ admittedAt: -1 }, 'submission.admittedAt must be a whole number from 0 to 9007199254740991'],
    [{ startAt: 2 ** 53 }, 'submission.startAt must be a whole number from 0 to 9007199254740991'],
    [{ deadline: Number.NaN }, 'submission.deadline must be a whole number from 0 to 9007199254740991'],
    [{ deadline: 1_000 }, 'submission.deadline must be after admittedAt'],
    [{ deadline: 1_500, startAt: 1_500 }, 'submission.deadline must be after startAt'],
    [{ priority: 1_002 }, 'submission.priority must be a whole number from -1000 to 1001'],
    [{ priority: 1_001 }, 'submission.priority must not be above 1000'],
    [{ idempotent: 1 }, 'submission.idempotent must be true or false'],
    [{ maxAttempts: 0 }, 'submission.maxAttempts must be a whole number from 1 to 10000'],
    [{ maxDeliveries: 11_001 }, 'submission.maxDeliveries must be a whole number from 1 to 11000'],
    [{ maxDeliveries: 2 }, 'submission.maxDeliveries must not be below maxAttempts'],
    [{ backoffBaseMs: 81 }, 'submission.backoffBaseMs must not be above backoffMaxMs'],
    [{ backoffMaxMs: 366 * 86_400_000 + 1 }, 'submission.backoffMaxMs must be a whole number from 0 to'],
    [{ reconcileAfterMs: -1 }, 'submission.reconcileAfterMs must be a whole number from 0 to'],
    [{ requiresEffect: 'a\tb' }, `submission.requiresEffect ${name(256)}`],
    [{ recurrence: [] }, 'submission.recurrence must be a plain object'],
    [
      { recurrence: { ...recurring.recurrence, intervalMs: 0 } },
      'submission.recurrence.intervalMs must be a whole number from 1 to',
    ],
    [
      { recurrence: { ...recurring.recurrence, maxCatchUp: -1 } },
      'submission.recurrence.maxCatchUp must be a whole number from 0 to',
    ],
    [
      { recurrence: recurring.recurrence, orderingKey: 'lane' },
      'submission.orderingKey must be null with recurrence',
    ],
    [
      { idempotencyKey: 'custody:7:12:reconcile' },
      'submission.idempotencyKey must not start with custody:, which internal jobs have',
    ],
    [
      { internal: { ...link0, purpose: 'spy' } },
      'submission.internal.purpose must be one of reconcile, compensate',
    ],
    [{ internal: link0 }, 'submission.priority must be 1001 for an internal job'],
    [{ ...internal, idempotent: false }, 'submission.idempotent must be true for an internal job'],
    [
      { ...internal, idempotencyKey: 'custody:7:13:reconcile' },
      'submission.idempotencyKey must be custody:7:12:reconcile for an internal job',
    ],
    [{ ...internal, orderingKey: 'lane' }, 'submission.orderingKey must be null for an internal job'],
    [{ ...internal, deadline: 9_000 }, 'submission.deadline must be null for an internal job'],
    [
      { ...internal, recurrence: recurring.recurrence },
      'submission.recurrence must be null for an internal job',
    ],
    [{ ...internal, requiresEffect: 'row' }, 'submission.requiresEffect must be null for an internal job'],
    [{ ...internal, reconciles: true }, 'submission.reconciles must be false for an internal job'],
    [{ ...internal, compensates: true }, 'submission.compensates must be false for an internal job'],
    [{ ...internal, inherited }, 'submission.inherited must be null for an internal job'],
    [{ inherited, idempotencyKey: 'k' }, 'submission.idempotencyKey must be null for a redriven job'],
    [{ inherited: { ...inherited, occurrence: 1 } }, 'submission.inherited.occurrence must be below 1'],
    [
      { inherited: { ...inherited, occurrence: 3 }, recurrence: recurring.recurrence },
      'submission.inherited.occurrence must be below 3',
    ],
    [
      { inherited: { ...inherited, requiredEffectCommitted: true } },
      'submission.inherited.requiredEffectCommitted needs requiresEffect',
    ],
    [
      { inherited: { ...inherited, openSteps: [step, step] } },
      'submission.inherited.openSteps must not name a key twice',
    ],
    [
      { inherited: { ...inherited, openSteps: [step, 7] } },
      'submission.inherited.openSteps[1] must be a plain object',
    ],
    [
      { inherited: { ...inherited, openSteps: Array.from({ length: 257 }, () => step) } },
      'submission.inherited.openSteps must be a plain list of at most 256',
    ],
  ])('%j', (changes, expected) => {
    expect(said(readSubmission({ ...plain, ...changes }))).toContain(expected);
  });
});

describe('a job is refused, naming field and rule, for', () => {
  const answered = { token: 12, outcome: 'succeeded', digest: sha256Hex('') } as const;
  const lease = running.lease ?? { token: 0, worker: '', expiresAt: 0, lengthMs: 0 };
  const fresh = initialJob(7, plain);
  const slow = { ...initialJob(7, recurring) };
  test.each<[string, unknown, string]>([
    ['no id', { ...fresh, id: 0 }, 'job.id must be a whole number from 1 to'],
    [
      'the state that is never stored',
      { ...fresh, state: 5 },
      'job.state must be one of 0, 1, 2, 3, 4, 6, 7, 8, 9',
    ],
    ['an unknown state', { ...fresh, state: 10 }, 'job.state must be one of 0, 1, 2, 3, 4, 6, 7, 8, 9'],
    ['an unknown cause', { ...fresh, cause: 'luck' }, 'job.cause must be one of reported'],
    [
      'an unknown outcome',
      { ...running, answered: { ...answered, outcome: 'fine' } },
      'job.answered.outcome must be one of succeeded',
    ],
    [
      'a submission with a broken rule',
      { ...fresh, submission: { ...plain, deadline: 5 } },
      'job.submission.deadline must be after admittedAt',
    ],
    [
      'a lease while it waits',
      { ...fresh, lease },
      'job.lease must be there exactly when the job is LEASED or RUNNING',
    ],
    [
      'no lease while it runs',
      { ...running, lease: null },
      'job.lease must be there exactly when the job is LEASED or RUNNING',
    ],
    [
      'a lease of another token',
      { ...running, lease: { ...lease, token: 11 } },
      'job.lease.token must be the token of the job',
    ],
    [
      'a lease of no length',
      { ...running, lease: { ...lease, lengthMs: 0 } },
      'job.lease.lengthMs must be a whole number from 1 to 86400000',
    ],
    [
      'a delivery without a token',
      { ...fresh, delivery: 1 },
      'job.token must be above 0 for a job that was delivered',
    ],
    [
      'an answer under a later token',
      { ...running, answered: { ...answered, token: 13 } },
      'job.answered.token must not be above the token of the job',
    ],
    [
      'reports that nobody counted',
      { ...uncertain, testimonies: 0 },
      'job.testimonies must be above 0 exactly when testified is there',
    ],
    [
      'counted reports that nobody made',
      { ...uncertain, testified: null },
      'job.testimonies must be above 0 exactly when testified is there',
    ],
    [
      'too many reports',
      { ...uncertain, testimonies: 33 },
      'job.testimonies must be a whole number from 0 to 32',
    ],
    [
      'testimony about a job that runs',
      { ...running, testified: answered, testimonies: 1 },
      'job.testified must be null unless the job is UNCERTAIN',
    ],
    [
      'testimony of another token',
      { ...uncertain, testified: { ...answered, token: 11 } },
      'job.testified.token must be the token of the job',
    ],
    [
      'a contract that became safe',
      { ...running, idempotent: true, submission: submissionOf({ idempotent: false }) },
      'job.idempotent must not be true when the submission says false',
    ],
    [
      'too many attempts',
      { ...running, attempt: 4, runs: 4, delivery: 4 },
      'job.attempt must not be above submission.maxAttempts',
    ],
    ['more attempts than runs', { ...running, attempt: 2 }, 'job.runs must not be below attempt'],
    ['more runs than deliveries', { ...running, runs: 2 }, 'job.delivery must not be below runs'],
    [
      'too many deliveries',
      { ...running, delivery: 1_004 },
      'job.delivery must not be above submission.maxDeliveries',
    ],
    [
      'custody never delivered',
      { ...running, state: 2, attempt: 0, runs: 0, delivery: 0 },
      'job.delivery must be above 0 for a job that is LEASED',
    ],
    [
      'an attempt never begun',
      { ...running, attempt: 0 },
      'job.attempt must be above 0 for a job that is RUNNING or UNCERTAIN',
    ],
    [
      'a slot without recurrence',
      { ...fresh, slotAt: 5 },
      'job.slotAt must be there exactly when the job recurs',
    ],
    [
      'recurrence without a slot',
      { ...slow, slotAt: null },
      'job.slotAt must be there exactly when the job recurs',
    ],
    ['an occurrence without recurrence', { ...fresh, occurrence: 1 }, 'job.occurrence must be from 0 to 0'],
    ['an occurrence past the last', { ...slow, occurrence: 3 }, 'job.occurrence must be from 0 to 2'],
    [
      'a step open twice',
      { ...running, openSteps: [...running.openSteps, ...running.openSteps] },
      'job.openSteps must not name a key twice',
    ],
    [
      'an effect nobody asked for',
      { ...running, requiredEffectCommitted: true },
      'job.requiredEffectCommitted needs submission.requiresEffect',
    ],
    [
      'an end of a job that runs',
      { ...running, endedAt: 5 },
      'job.endedAt must be there exactly when the job has ended',
    ],
    [
      'no end of a dead job',
      { ...dead, endedAt: null },
      'job.endedAt must be there exactly when the job has ended',
    ],
    [
      'an unknown outcome of a job that runs',
      { ...running, outcomeUnknown: true },
      'job.outcomeUnknown must be false for a job that has not ended',
    ],
    [
      'a cancellation that did not stick',
      { ...fresh, cancelRequested: true },
      'job.cancelRequested must be false for a job that waits or is LEASED',
    ],
    [
      'an end without a cause',
      { ...dead, cause: null },
      'job.cause must be there for a job that is UNCERTAIN or has ended',
    ],
    [
      'doubt without a cause',
      { ...uncertain, cause: null },
      'job.cause must be there for a job that is UNCERTAIN or has ended',
    ],
  ])('%s', (_, job, expected) => {
    expect(said(readJob(job))).toContain(expected);
  });
});

describe('hostile data', () => {
  const trap = (): never => {
    throw new Error('code of the data ran');
  };

  test('is read without running its accessors, and refused for having them', () => {
    const job = { ...running };
    Object.defineProperty(job, 'state', { enumerable: true, get: trap });
    expect(said(readJob(job))).toBe('job must be a plain object');
    const steps = [...running.openSteps];
    Object.defineProperty(steps, 0, { enumerable: true, get: trap });
    expect(said(readJob({ ...running, openSteps: steps }))).toContain('job.openSteps must be a plain list');
  });

  test('with a prototype of its own brings no field along', () => {
    const proto = JSON.parse('{"__proto__": {"kind": "stolen"}}') as object;
    expect(said(readSubmission({ ...plain, ...proto }))).toBe('submission.__proto__ is not a field of it');
    const { kind: _kind, ...rest } = plain;
    expect(said(readSubmission(Object.assign(Object.create({ kind: 'stolen' }) as object, rest)))).toBe(
      'submission must be a plain object',
    );
  });

  test.each<[string, unknown]>([
    ['a list with a hole', Object.assign([...running.openSteps, ...running.openSteps], { length: 3 })],
    ['a list with a property', Object.assign([...running.openSteps], { more: 1 })],
    [
      'a list that lacks an item but has a property',
      Object.assign(Array.from({ length: 0 }), { length: 1, more: 1 }),
    ],
    ['a thing like a list', { length: 1, 0: running.openSteps[0] }],
    ['a list a million long', Array.from({ length: 1_000_000 })],
    ['a proxy whose traps throw', new Proxy([], { ownKeys: trap })],
    ['nothing', null],
  ])('%s is no list of steps', (_, openSteps) => {
    expect(said(readJob({ ...running, openSteps }))).toBe(
      'job.openSteps must be a plain list of at most 256',
    );
  });

  test('of any shape is refused and never throws', () => {
    const value = fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true });
    fc.assert(
      fc.property(value, fc.constantFrom(...Object.keys(plain)), (given, field) => {
        expect(readJob(given).ok).toBe(false);
        expect(readSubmission(given).ok).toBe(false);
        const read = readSubmission({ ...plain, [field]: given });
        const kept = read.ok ? read.value[field as keyof Submission] : given;
        expect(kept).toEqual(Object.is(kept, 0) ? 0 : given);
      }),
    );
  });

  test('is named by the path it was given', () => {
    expect(said(readJob(null, 'snapshot.jobs[3]'))).toBe('snapshot.jobs[3] must be a plain object');
  });
});
