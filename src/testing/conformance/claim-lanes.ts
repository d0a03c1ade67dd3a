/** Lanes: within one, jobs start strictly in admission order, and what holds one lane holds no other. */
import { STATE } from '../../core/index.ts';
import {
  claimIds,
  claimOne,
  enqueueMany,
  holderOf,
  jobOf,
  LEASE_MS,
  OPERATOR,
  settleOne,
  succeed,
} from './build.ts';
import { accepted, present, same, stands } from './check.ts';
import { type ConformanceCase, casesOf, type OpenedStore } from './harness.ts';

const ALICE = { orderingKey: 'alice' } as const;
const BOB = { orderingKey: 'bob' } as const;

/** Ids of two jobs of one lane and one of another, in this order. */
async function lanes({ store }: OpenedStore, head: object = {}): Promise<readonly [number, number, number]> {
  const [first, second, other] = await enqueueMany(store, [
    { ...ALICE, ...head },
    { ...ALICE, priority: 9 },
    BOB,
  ]);
  return [present(first, 'job').id, present(second, 'job').id, present(other, 'job').id];
}

export const claimLaneCases: readonly ConformanceCase[] = casesOf('claim', {
  'jobs of one lane start in admission order, whatever their priority': async ({ store }) => {
    const requests = [0, 9, -9, 3].map((priority) => ({ ...ALICE, priority }));
    const ids = (await enqueueMany(store, requests)).map(({ id }) => id);
    const order: number[] = [];
    for (let step = 0; step < ids.length; step += 1) {
      const { job } = await claimOne(store);
      same(await claimIds(store, { max: 500 }), [], 'ids beside the running head');
      order.push(job.id);
      await succeed(store, job);
    }
    same(order, ids, 'order of starts');
  },

  'one claim takes at most the head of a lane, however many it asks for': async (opened) => {
    const [head, , other] = await lanes(opened);
    same(await claimIds(opened.store, { max: 500 }), [head, other], 'ids claimed');
  },

  'a head that waits for its start holds its lane, and no other': async (opened) => {
    const { store, clock } = opened;
    const [head, second, other] = await lanes(opened, { delayMs: 100 });
    same(await claimIds(store, { max: 500 }), [other], 'ids while the head waits');
    clock.advance(100);
    const { job } = await claimOne(store);
    same(job.id, head, 'id once the head is due');
    await succeed(store, job);
    same(await claimIds(store, { max: 500 }), [second], 'ids once the head has ended');
  },

  'a head that waits for its retry holds its lane': async (opened) => {
    const { store } = opened;
    const [head, , other] = await lanes(opened);
    const { job } = await claimOne(store, { max: 1 });
    same(job.id, head, 'id claimed');
    stands(accepted(await settleOne(store, job, 'retryable'), 'the retry'), STATE.SCHEDULED);
    same(await claimIds(store, { max: 500 }), [other], 'ids while the retry waits');
  },

  'an UNCERTAIN head holds its lane until it is decided': async (opened) => {
    const { store, clock } = opened;
    const [head, second, other] = await lanes(opened, { idempotent: false });
    const { job } = await claimOne(store);
    clock.advance(LEASE_MS);
    same(await claimIds(store, { max: 500 }), [other], 'ids while nobody knows');
    stands(await jobOf(store, head), STATE.UNCERTAIN);
    const decision = { ...holderOf(job), decision: 'failed', by: OPERATOR } as const;
    accepted(await store.reconcile(decision), 'the decision');
    same(await claimIds(store, { max: 500 }), [second], 'ids once it is decided');
  },

  'a head that ends frees its lane, in whatever way it ends': async ({ store, clock }) => {
    const requests = Array.from({ length: 6 }, () => ({ ...ALICE, maxAttempts: 1 }));
    const ids = (await enqueueMany(store, requests)).map(({ id }) => id);
    const order: number[] = [];
    const next = async (): Promise<Awaited<ReturnType<typeof claimOne>>['job']> => {
      const { job } = await claimOne(store);
      order.push(job.id);
      return job;
    };
    await succeed(store, await next());
    accepted(await settleOne(store, await next(), 'permanent'), 'the permanent failure');
    accepted(await settleOne(store, await next(), 'retryable'), 'the last attempt');
    const { id } = await next();
    clock.advance(LEASE_MS);
    const fifth = present(ids[4], 'id');
    accepted(await store.cancel({ id: fifth, by: OPERATOR }), 'the cancellation');
    await next();
    stands(await jobOf(store, id), STATE.DEAD_LETTERED);
    same(order, [ids[0], ids[1], ids[2], ids[3], ids[5]], 'order of starts');
  },

  'a member that ends behind the head does not let a later one pass the head': async ({ store }) => {
    const [head, second, third] = await enqueueMany(store, [ALICE, ALICE, ALICE]);
    const { job } = await claimOne(store);
    accepted(await store.cancel({ id: present(second, 'job').id, by: OPERATOR }), 'the cancellation');
    same(await claimIds(store, { max: 500 }), [], 'ids while the head runs');
    same(job.id, present(head, 'job').id, 'id of the head');
    await succeed(store, job);
    same(await claimIds(store, { max: 500 }), [present(third, 'job').id], 'ids once it has ended');
  },

  'a lane is a queue and a key: the same key in another queue is another lane': async ({ store }) => {
    const jobs = await enqueueMany(store, [ALICE, { ...ALICE, queue: 'other' }, { orderingKey: 'Alice' }]);
    same((await claimIds(store, { max: 500 })).length, jobs.length, 'jobs claimed');
  },

  'a head nobody here can run holds its lane too': async ({ store }) => {
    await enqueueMany(store, [{ ...ALICE, kind: 'mail' }, ALICE]);
    same(await claimIds(store, { max: 500 }), [], 'ids claimed');
  },

  'a head whose deadline passed is buried in the claim that then gets its successor': async (opened) => {
    const { store, clock } = opened;
    const [head, second, other] = await lanes(opened, { delayMs: 5, deadline: clock.now() + 10 });
    clock.advance(10);
    same(await claimIds(store, { max: 500 }), [second, other], 'ids claimed');
    stands(await jobOf(store, head), STATE.DEAD_LETTERED);
  },

  'a lane keeps its order over a restart': async (opened) => {
    const [head, second] = await lanes(opened);
    const { job } = await claimOne(opened.store);
    same(job.id, head, 'id of the head');
    const { store } = await opened.reopen();
    same((await claimIds(store, { max: 500 })).includes(second), false, 'the second starts beside the head');
    await succeed(store, job);
    same(await claimIds(store, { max: 500 }), [second], 'ids once the head has ended');
  },
});
