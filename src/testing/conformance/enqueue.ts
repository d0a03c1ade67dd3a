/** Enqueue, as long as keys and bounds play no part: what is admitted is exactly what was asked, or nothing at all. */
import { type JobRequest, limits, STATE } from '../../core/index.ts';
import { InvalidInputError } from '../../store/errors.ts';
import { enqueueMany, enqueueOne, jobOf, jobRequest, unique, viewOf } from './build.ts';
import { check, only, present, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf, type OpenedStore } from './harness.ts';

/** The field an enqueue of this request is refused for. */
async function refusedField({ store }: OpenedStore, request: Partial<JobRequest>): Promise<string> {
  const what = `enqueueing ${Object.keys(request).join(' and ')}`;
  const error = await rejects(() => store.enqueue([jobRequest(request)]), 'invalid_input', what);
  check(error instanceof InvalidInputError, 'bad input throws an InvalidInputError');
  return error.field;
}

async function holdsNothing({ store }: OpenedStore): Promise<void> {
  same((await store.find({ internal: true })).jobs, [], 'jobs stored');
}

const HOLED = [1];
HOLED[2] = 3;
const CYCLE: { self?: unknown } = {};
CYCLE.self = CYCLE;
class Money {
  readonly cents = 7;
}

const UNFAITHFUL: Readonly<Record<string, unknown>> = {
  'undefined as the payload': undefined,
  'undefined inside': { a: [1, { b: undefined }] },
  'a hole in a list': { a: HOLED },
  'a function': { a: () => 1 },
  'a symbol': { a: Symbol('a') },
  'a BigInt': { a: 1n },
  NaN: { a: Number.NaN },
  infinity: { a: Number.NEGATIVE_INFINITY },
  'a cycle': CYCLE,
  'a lone surrogate': { a: '\ud800' },
  'a lone surrogate in a name': { '\udc00': 1 },
  'a date': { a: new Date(0) },
  'a map': { a: new Map([[1, 2]]) },
  'an instance of a class': { a: new Money() },
  'a payload nested too deep': nested(limits.payloadDepthMax + 1),
  'a payload too large': 'x'.repeat(limits.payloadBytesMax),
};

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}

const BAD_FIELDS: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
  ['kind', { kind: '' }],
  ['kind', { kind: 'k'.repeat(limits.kindBytesMax + 1) }],
  ['kind', { kind: 'a\u0000b' }],
  ['revision', { revision: 0 }],
  ['revision', { revision: 256 }],
  ['idempotent', { idempotent: 'yes' }],
  ['queue', { queue: 'q\n' }],
  ['orderingKey', { orderingKey: '' }],
  ['orderingKey', { orderingKey: '\u00e4'.repeat(limits.orderingKeyBytesMax / 2 + 1) }],
  ['idempotencyKey', { idempotencyKey: 'k'.repeat(limits.idempotencyKeyBytesMax + 1) }],
  ['idempotencyKey', { idempotencyKey: 'custody:1:1:reconcile' }],
  ['priority', { priority: limits.priorityMax + 1 }],
  ['priority', { priority: limits.priorityMin - 1 }],
  ['priority', { priority: 0.5 }],
  ['startAt', { startAt: -1 }],
  ['startAt', { startAt: 2 ** 53 }],
  ['delayMs', { delayMs: Number.NaN }],
  ['delayMs', { startAt: 10, delayMs: 10 }],
  ['deadline', { deadline: 1.5 }],
  ['maxAttempts', { maxAttempts: 0 }],
  ['maxAttempts', { maxAttempts: limits.maxAttemptsMax + 1 }],
  ['backoffBaseMs', { backoffBaseMs: 2, backoffMaxMs: 1 }],
  ['backoffMaxMs', { backoffMaxMs: limits.backoffMsMax + 1 }],
  ['reconcileAfterMs', { reconcileAfterMs: -1 }],
  ['acceptLateReports', { acceptLateReports: 1 }],
  ['requiresEffect', { requiresEffect: '' }],
  ['recurrence.intervalMs', { recurrence: { intervalMs: 0, maxOccurrences: 1, maxCatchUp: 0 } }],
  ['recurrence.maxOccurrences', { recurrence: { intervalMs: 1, maxOccurrences: 0, maxCatchUp: 0 } }],
  ['recurrence.maxCatchUp', { recurrence: { intervalMs: 1, maxOccurrences: 1 } }],
  ['orderingKey', { recurrence: { intervalMs: 1, maxOccurrences: 1, maxCatchUp: 0 }, orderingKey: 'a' }],
  ['prioritty', { prioritty: 5 }],
];

const EDGES: readonly Partial<JobRequest>[] = [
  { kind: 'k'.repeat(limits.kindBytesMax), revision: 255, queue: 'q'.repeat(limits.queueBytesMax) },
  { orderingKey: '\u00e4'.repeat(limits.orderingKeyBytesMax / 2), priority: limits.priorityMax },
  { idempotencyKey: 'k'.repeat(limits.idempotencyKeyBytesMax), priority: limits.priorityMin },
  { payload: nested(limits.payloadDepthMax), maxAttempts: limits.maxAttemptsMax },
  { payload: 'x'.repeat(limits.payloadBytesMax - 2), maxAttempts: 1 },
  { payload: null, backoffBaseMs: 0, backoffMaxMs: limits.backoffMsMax, revision: 1 },
  { startAt: limits.tickMax },
];

export const enqueueCases: readonly ConformanceCase[] = casesOf('enqueue', {
  'ids rise in the order of a batch and over batches, so admission order is never lost': async ({
    store,
  }) => {
    const first = await enqueueMany(store, [{}, {}, {}]);
    const second = await enqueueMany(store, [{}, {}]);
    const ids = [...first, ...second].map((job) => job.id);
    check(ids.every(Number.isSafeInteger), 'ids are whole numbers');
    same(
      ids,
      [...new Set(ids)].sort((a, b) => a - b),
      'ids',
    );
  },

  'an empty batch stores nothing': async (opened) => {
    same(await opened.store.enqueue([]), [], 'verdicts');
    await holdsNothing(opened);
  },

  'a bad member is named by its place and nothing of the batch is stored': async (opened) => {
    const batch = [jobRequest(), jobRequest({ priority: 2_000 }), jobRequest()];
    const error = await rejects(() => opened.store.enqueue(batch), 'invalid_input', 'a bad member');
    check(error instanceof InvalidInputError, 'bad input throws an InvalidInputError');
    same(error.field, 'jobs[1].priority', 'field of the error');
    await holdsNothing(opened);
  },

  'more members than a batch may hold store nothing': async (opened) => {
    const batch = Array.from({ length: limits.enqueueBatchMax + 1 }, () => jobRequest());
    await rejects(() => opened.store.enqueue(batch), 'invalid_input', 'too large a batch');
    await holdsNothing(opened);
  },

  'a payload that JSON cannot keep exactly is refused with the path to the culprit': async (opened) => {
    for (const [name, payload] of Object.entries(UNFAITHFUL)) {
      const field = await refusedField(opened, { payload });
      check(field.startsWith('jobs[0].payload'), `${name} is refused at ${field}`);
    }
    const batch = [jobRequest({ payload: { a: [1, { b: undefined }] } })];
    const error = await rejects(() => opened.store.enqueue(batch), 'invalid_input', 'undefined inside');
    check(error.message.includes('a[1].b'), `the message names the path: ${error.message}`);
    await holdsNothing(opened);
  },

  'a field outside its bound is refused by name and never clipped': async (opened) => {
    for (const [field, request] of BAD_FIELDS) {
      same(await refusedField(opened, request), `jobs[0].${field}`, `field for ${JSON.stringify(request)}`);
    }
    await holdsNothing(opened);
  },

  'every bound itself is allowed': async ({ store }) => {
    for (const request of EDGES) await enqueueOne(store, request);
  },

  'NUL, __proto__, an empty name and minus zero survive as data': async ({ store }) => {
    const payload: unknown = JSON.parse(
      '{"z":-0,"__proto__":{"x":1},"":"","a":"\\u0000","\\u00e4":"\\ud83d\\ude00"}',
    );
    const { id } = await enqueueOne(store, { payload });
    const text = '{"":"","__proto__":{"x":1},"a":"\\u0000","z":0,"\u00e4":"\ud83d\ude00"}';
    same((await viewOf(store, id)).payload, text, 'canonical payload');
  },

  'editing a request, or an answer, after it was admitted changes nothing': async ({ store }) => {
    const payload = { cents: 7, to: ['alice'] };
    const recurrence = { intervalMs: 10, maxOccurrences: 3, maxCatchUp: 1 };
    const job = await enqueueOne(store, { payload, recurrence });
    const stored = structuredClone(await viewOf(store, job.id));
    payload.to.push('mallory');
    recurrence.intervalMs = 1;
    Reflect.set(job, 'state', STATE.SUCCEEDED);
    Reflect.set(job.submission, 'priority', 5);
    Reflect.set((await viewOf(store, job.id)).job, 'token', 99);
    same(await viewOf(store, job.id), stored, 'the stored job');
  },

  'what was not said takes its documented default': async ({ store }) => {
    const { submission } = await enqueueOne(store);
    same(submission.queue, 'default', 'queue');
    same(submission.priority, 0, 'priority');
    same(submission.maxAttempts, limits.maxAttemptsDefault, 'attempts');
    same(submission.maxDeliveries, limits.deliveriesSpare + limits.maxAttemptsDefault, 'deliveries');
    same(submission.backoffBaseMs, limits.backoffBaseMsDefault, 'base of the backoff');
    same(submission.backoffMaxMs, limits.backoffMaxMsDefault, 'cap of the backoff');
    same(submission.reconcileAfterMs, limits.leaseMsDefault, 'wait before reconciling');
    same(submission.acceptLateReports, true, 'late reports');
    same(
      [submission.deadline, submission.orderingKey, submission.recurrence],
      [null, null, null],
      'the rest',
    );
  },

  'a job whose start lies ahead is SCHEDULED, and a start of exactly now is not ahead': async ({
    store,
    clock,
  }) => {
    const now = clock.now();
    const jobs = await enqueueMany(store, [{}, { startAt: now }, { startAt: now + 1 }, { delayMs: 1 }]);
    const [pending, exact, ahead, delayed] = jobs.map((job) => present(job, 'job'));
    stands(present(pending, 'job'), STATE.PENDING);
    stands(present(exact, 'job'), STATE.PENDING);
    stands(present(ahead, 'job'), STATE.SCHEDULED);
    same(stands(present(delayed, 'job'), STATE.SCHEDULED).startAt, now + 1, 'start of the delayed job');
  },

  'a delay that would pass the last tick is refused, and nothing is stored': async (opened) => {
    opened.clock.advance(1);
    same(await refusedField(opened, { delayMs: limits.tickMax }), 'jobs[0].delayMs', 'field');
    await holdsNothing(opened);
  },

  'a recurrence whose slots would pass the last tick is refused before it can overflow': async (opened) => {
    const recurrence = { intervalMs: 1_000_000_000, maxOccurrences: 2, maxCatchUp: 1_000_000_000 };
    const startAt = limits.tickMax - recurrence.intervalMs;
    same(await refusedField(opened, { recurrence, startAt }), 'jobs[0].recurrence', 'field');
    await holdsNothing(opened);
  },

  'a deadline of exactly now is passed, and one a millisecond later is not': async ({ store, clock }) => {
    const now = clock.now();
    const verdicts = await store.enqueue([jobRequest({ deadline: now }), jobRequest({ deadline: now + 1 })]);
    same(verdicts[0], { status: 'refused', refused: 'deadline_passed', id: null }, 'the deadline of now');
    same(verdicts[1]?.status, 'created', 'the later one');
  },

  'a job that could only start at or after its deadline is not admitted': async ({ store, clock }) => {
    const deadline = clock.now() + 100;
    const requests = [jobRequest({ delayMs: 100, deadline }), jobRequest({ delayMs: 99, deadline })];
    const verdicts = await store.enqueue(requests);
    same(
      verdicts.map(({ status }) => status),
      ['refused', 'created'],
      'verdicts',
    );
  },

  'a refused member leaves the others of its batch alone': async ({ store, clock }) => {
    const deadline = clock.now();
    const verdicts = await store.enqueue([jobRequest(), jobRequest({ deadline }), jobRequest()]);
    same(
      verdicts.map(({ status }) => status),
      ['created', 'refused', 'created'],
      'verdicts',
    );
    same((await store.find({})).jobs.length, 2, 'jobs stored');
  },

  'an atomic batch with a refused member stores none, and its keys stay free': async (opened) => {
    const { store, clock } = opened;
    const key = unique('key');
    const batch = [jobRequest({ idempotencyKey: key }), jobRequest({ deadline: clock.now() }), jobRequest()];
    const verdicts = await store.enqueue(batch, { atomic: true });
    same(
      verdicts.map(({ status }) => status),
      ['withheld', 'refused', 'withheld'],
      'verdicts',
    );
    await holdsNothing(opened);
    same(await store.getByKey(key), null, 'the key of a withheld member');
    await enqueueOne(store, { idempotencyKey: key, payload: 'other' });
  },

  'an atomic batch without a refused member stores all': async ({ store }) => {
    const verdicts = await store.enqueue([jobRequest(), jobRequest()], { atomic: true });
    same(
      verdicts.map(({ status }) => status),
      ['created', 'created'],
      'verdicts',
    );
  },

  'a duplicate in an atomic batch that is refused is still told which job it has': async ({
    store,
    clock,
  }) => {
    const request = jobRequest({ idempotencyKey: unique('key') });
    const first = only(await store.enqueue([request]), 'verdicts');
    check(first.status === 'created', 'the first is created');
    const verdicts = await store.enqueue([request, jobRequest({ deadline: clock.now() })], { atomic: true });
    const [again] = verdicts;
    check(again?.status === 'duplicate', `the known member is a duplicate, and was ${again?.status}`);
    same(again.id, first.id, 'id of the duplicate');
  },

  'every job gets a lineage of its own': async ({ store }) => {
    const lineages = (await enqueueMany(store, [{}, {}, {}])).map((job) => job.submission.lineage);
    same(new Set(lineages).size, 3, 'different lineages');
    for (const lineage of lineages) {
      check(lineage.length > 0 && lineage.length <= limits.lineageBytesMax, `length of lineage ${lineage}`);
    }
  },

  'a request sent again under its request id makes no second job': async ({ store }) => {
    const request = jobRequest({ requestId: unique('request') });
    const [first] = await store.enqueue([request]);
    const [again] = await store.enqueue([request]);
    check(first?.status === 'created' && again?.status === 'created', 'both answers say created');
    same(again.id, first.id, 'id in the second answer');
    same((await store.find({})).jobs.length, 1, 'jobs stored');
  },

  'a job that was admitted is there after a restart, exactly as it was answered': async (opened) => {
    const job = await enqueueOne(opened.store, { orderingKey: 'alice', deadline: 90_000, delayMs: 5 });
    const before = await viewOf(opened.store, job.id);
    const { store } = await opened.reopen();
    same(await jobOf(store, job.id), before.job, 'the job');
    same(await viewOf(store, job.id), before, 'what lies beside it');
  },
});
