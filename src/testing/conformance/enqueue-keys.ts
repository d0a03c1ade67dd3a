/** Idempotency keys: one key, one content, one job; nothing is merged silently and nothing is stored twice. */
import { type JobRequest, limits, STATE } from '../../core/index.ts';
import type { EnqueueVerdict, Store } from '../../store/store.ts';
import {
  claimOne,
  deadJob,
  enqueueOne,
  jobRequest,
  OPERATOR,
  runningJob,
  succeed,
  unique,
  viewOf,
} from './build.ts';
import { check, only, present, same, stands } from './check.ts';
import { type ConformanceCase, casesOf, type OpenedStore } from './harness.ts';

async function enqueueVerdict(store: Store, request: Partial<JobRequest>): Promise<EnqueueVerdict> {
  return only(await store.enqueue([jobRequest(request)]), 'verdicts');
}

async function isDuplicate(
  store: Store,
  request: Partial<JobRequest>,
  id: number,
  ignored: readonly string[] = [],
): Promise<void> {
  const verdict = await enqueueVerdict(store, request);
  check(
    verdict.status === 'duplicate',
    `${JSON.stringify(request)} must be a duplicate, was ${verdict.status}`,
  );
  same(verdict.id, id, 'id of the existing job');
  same(verdict.ignored, ignored, 'options that had no effect');
  same(verdict.job, (await store.get(id))?.job ?? null, 'the existing job');
}

async function isConflict(store: Store, request: Partial<JobRequest>, id: number): Promise<void> {
  const verdict = await enqueueVerdict(store, request);
  same(verdict, { status: 'refused', refused: 'conflict', id }, `verdict on ${JSON.stringify(request)}`);
}

/** A job that succeeded and was pruned at its age, so that only its key is left; the clock stands at the prune. */
async function prunedJob({ store, clock }: OpenedStore, request: Partial<JobRequest>): Promise<number> {
  const job = await succeed(store, await runningJob(store, request));
  clock.advance(limits.keepSucceededMsDefault);
  same((await store.prune({ by: OPERATOR })).jobs, 1, 'jobs pruned');
  return job.id;
}

export const enqueueKeyCases: readonly ConformanceCase[] = casesOf('enqueue', {
  'the same key with the same content finds its job and makes no second one': async ({ store }) => {
    const idempotencyKey = unique('key');
    const { id } = await enqueueOne(store, { idempotencyKey });
    await isDuplicate(store, { idempotencyKey }, id);
    same((await store.find({})).jobs.length, 1, 'jobs stored');
  },

  'the order of names in a payload does not make it other content': async ({ store }) => {
    const idempotencyKey = unique('key');
    const { id } = await enqueueOne(store, { idempotencyKey, payload: { a: 1, b: { c: 2, d: 0 } } });
    await isDuplicate(store, { idempotencyKey, payload: { b: { d: -0, c: 2 }, a: 1 } }, id);
  },

  'a key used again with other content is a conflict that names the job and changes nothing': async ({
    store,
  }) => {
    const idempotencyKey = unique('key');
    const job = await enqueueOne(store, { idempotencyKey, orderingKey: 'alice', payload: { cents: 7 } });
    const before = await viewOf(store, job.id);
    const request = { idempotencyKey, orderingKey: 'alice', payload: { cents: 7 } };
    const recurrence = { intervalMs: 1_000, maxOccurrences: 2, maxCatchUp: 0 };
    await isConflict(store, { ...request, payload: { cents: 8 } }, job.id);
    await isConflict(store, { ...request, payload: { cents: '7' } }, job.id);
    await isConflict(store, { ...request, kind: 'refund' }, job.id);
    await isConflict(store, { ...request, queue: 'slow' }, job.id);
    await isConflict(store, { ...request, orderingKey: 'bob' }, job.id);
    await isConflict(store, { ...request, orderingKey: null }, job.id);
    await isConflict(store, { ...request, orderingKey: null, recurrence }, job.id);
    same(await viewOf(store, job.id), before, 'the job that has the key');
    same((await store.find({})).jobs.length, 1, 'jobs stored');
  },

  'what belongs to the policy and not to the content makes no conflict': async ({ store }) => {
    const idempotencyKey = unique('key');
    const { id } = await enqueueOne(store, { idempotencyKey });
    await isDuplicate(store, { idempotencyKey, revision: 2, maxAttempts: 9, backoffBaseMs: 5 }, id);
    await isDuplicate(store, { idempotencyKey, idempotent: false, compensates: true }, id);
  },

  'a duplicate says which options differ and had no effect': async ({ store, clock }) => {
    const idempotencyKey = unique('key');
    const deadline = clock.now() + 90_000;
    const request = { idempotencyKey, priority: 5, delayMs: 100, deadline };
    const { id } = await enqueueOne(store, request);
    await isDuplicate(store, request, id);
    await isDuplicate(store, { ...request, priority: 6 }, id, ['priority']);
    await isDuplicate(store, { ...request, delayMs: 0 }, id, ['delay']);
    await isDuplicate(store, { ...request, deadline: null }, id, ['deadline']);
    await isDuplicate(store, { idempotencyKey }, id, ['priority', 'delay', 'deadline']);
    await isDuplicate(store, { ...request, delayMs: 0, startAt: clock.now() + 100 }, id);
  },

  'the same key and content twice in one batch make one job': async ({ store }) => {
    const request = jobRequest({ idempotencyKey: unique('key') });
    const [first, second] = await store.enqueue([request, request]);
    check(first?.status === 'created' && second?.status === 'duplicate', 'created, then duplicate');
    same(second.id, first.id, 'id of the duplicate');
  },

  'other content under a key of the same batch is a conflict with its earlier member': async ({ store }) => {
    const idempotencyKey = unique('key');
    const batch = [jobRequest({ idempotencyKey }), jobRequest({ idempotencyKey, payload: 'other' })];
    const [first, second] = await store.enqueue(batch);
    check(first?.status === 'created', 'the first member is created');
    same(second, { status: 'refused', refused: 'conflict', id: first.id }, 'verdict on the second');
  },

  'rivals for one key see one job: one creates it and all others find it': async ({ store }) => {
    const request = jobRequest({ idempotencyKey: unique('key') });
    const calls = Array.from({ length: 16 }, () => store.enqueue([request]));
    const verdicts = (await Promise.all(calls)).flat();
    same(verdicts.filter(({ status }) => status === 'created').length, 1, 'jobs created');
    same(verdicts.filter(({ status }) => status === 'duplicate').length, 15, 'duplicates');
    const ids = verdicts.map((verdict) => ('id' in verdict ? verdict.id : null));
    same(new Set(ids).size, 1, 'different ids in the answers');
  },

  'a duplicate is found also at full capacity, and so is a conflict': async ({ store }) => {
    await store.configure('default', { maxUnresolved: 1 }, OPERATOR);
    const idempotencyKey = unique('key');
    const { id } = await enqueueOne(store, { idempotencyKey });
    await isDuplicate(store, { idempotencyKey }, id);
    await isConflict(store, { idempotencyKey, payload: 'other' }, id);
  },

  'a duplicate is found also after its deadline, and so is a conflict': async ({ store, clock }) => {
    const idempotencyKey = unique('key');
    const deadline = clock.now() + 10;
    const { id } = await enqueueOne(store, { idempotencyKey, deadline });
    clock.advance(10);
    await isDuplicate(store, { idempotencyKey, deadline }, id);
    await isConflict(store, { idempotencyKey, deadline, payload: 'other' }, id);
  },

  'a job that ended still answers for its key': async ({ store }) => {
    const idempotencyKey = unique('key');
    const job = await deadJob(store, { idempotencyKey });
    await isDuplicate(store, { idempotencyKey }, job.id);
    await isConflict(store, { idempotencyKey, payload: 'other' }, job.id);
  },

  'the key of an unresolved job is kept for as long as that takes': async ({ store, clock }) => {
    const idempotencyKey = unique('key');
    const { id } = await enqueueOne(store, { idempotencyKey });
    clock.advance(limits.keepKeysForMsDefault * 20);
    await store.prune({ by: OPERATOR });
    await isDuplicate(store, { idempotencyKey }, id);
  },

  'a pruned job leaves a tombstone that still refuses other content': async (opened) => {
    const { store } = opened;
    const idempotencyKey = unique('key');
    const id = await prunedJob(opened, { idempotencyKey });
    same(await store.get(id), null, 'the pruned job');
    await isDuplicate(store, { idempotencyKey, priority: 9 }, id);
    await isConflict(store, { idempotencyKey, payload: 'other' }, id);
    same(await store.getByKey(idempotencyKey), { id, view: null }, 'what the key answers');
    const { store: restarted } = await opened.reopen();
    await isConflict(restarted, { idempotencyKey, payload: 'other' }, id);
  },

  'a key is kept until exactly its time after the end of its job, then it is free': async (opened) => {
    const { store, clock } = opened;
    const idempotencyKey = unique('key');
    const endedAt = clock.now();
    const id = await prunedJob(opened, { idempotencyKey });
    clock.set(endedAt + limits.keepKeysForMsDefault - 1);
    same((await store.prune({ by: OPERATOR })).keys, 0, 'keys pruned a millisecond too early');
    await isConflict(store, { idempotencyKey, payload: 'other' }, id);
    clock.advance(1);
    same((await store.prune({ by: OPERATOR })).keys, 1, 'keys pruned in time');
    same(await store.getByKey(idempotencyKey), null, 'the key');
    const next = await enqueueOne(store, { idempotencyKey, payload: 'other' });
    check(next.id > id, `the id of a pruned job must not return, and ${next.id} is not above ${id}`);
  },

  'a key whose time is over answers with nothing, and is free, also before anybody pruned it': async (
    opened,
  ) => {
    const { store, clock } = opened;
    const idempotencyKey = unique('key');
    const endedAt = clock.now();
    await prunedJob(opened, { idempotencyKey });
    clock.set(endedAt + limits.keepKeysForMsDefault);
    same(await store.getByKey(idempotencyKey), null, 'what the key answers');
    const { id } = await enqueueOne(store, { idempotencyKey, payload: 'other' });
    same((await store.getByKey(idempotencyKey))?.id, id, 'what the key answers once it is used again');
  },

  'a key answers with its job, and an unknown one with nothing': async ({ store }) => {
    const idempotencyKey = unique('key');
    const { id } = await enqueueOne(store, { idempotencyKey });
    same(await store.getByKey(idempotencyKey), { id, view: await viewOf(store, id) }, 'what the key answers');
    same(await store.getByKey(unique('key')), null, 'what an unknown key answers');
  },

  'keys that look alike are different keys': async ({ store }) => {
    const key = unique('key');
    const keys = [
      key,
      `${key} `,
      key.toUpperCase(),
      `${key}\u00e4`,
      `${key}a\u0308`,
      '__proto__',
      'constructor',
    ];
    for (const idempotencyKey of keys) await enqueueOne(store, { idempotencyKey });
    same((await store.find({})).jobs.length, keys.length, 'jobs stored');
  },

  'the key of a job that runs finds it running': async ({ store }) => {
    const idempotencyKey = unique('key');
    const { id } = await enqueueOne(store, { idempotencyKey });
    await claimOne(store);
    const view = present(await store.getByKey(idempotencyKey), 'the key').view;
    same(stands(present(view, 'the job').job, STATE.RUNNING).id, id, 'id');
    await isDuplicate(store, { idempotencyKey }, id);
  },
});
