/** Stories of order and time: what waits holds only its own, no deadline is stretched, no clock makes a lease immortal. */
import { limits, STATE } from '../../src/core/index.ts';
import {
  claimIds,
  claimOne,
  deadJob,
  enqueueMany,
  enqueueOne,
  factTypes,
  jobOf,
  jobRequest,
  LEASE_MS,
  leaseOne,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  unique,
  viewOf,
} from '../../src/testing/conformance/build.ts';
import {
  accepted,
  check,
  only,
  present,
  refused,
  same,
  stands,
} from '../../src/testing/conformance/check.ts';
import type { ConformanceCase } from '../../src/testing/index.ts';
import { stories } from './story.ts';

const TRANSFER = { kind: 'transfer', idempotent: true } as const;

export const orderStories: readonly ConformanceCase[] = stories({
  'a retry that waits in the future blocks its lane and no other': async ({ store, clock }) => {
    const [first, second, other] = await enqueueMany(store, [
      { orderingKey: 'alice', backoffBaseMs: 5_000, backoffMaxMs: 5_000 },
      { orderingKey: 'alice' },
      { orderingKey: 'bob' },
    ]);
    const retry = accepted(await settleOne(store, (await claimOne(store)).job, 'retryable'), 'the retry');
    same(await claimIds(store, { max: 500 }), [present(other, 'job').id], 'ids while the retry waits');
    clock.set(retry.startAt - 1);
    same(
      (await claimIds(store, { max: 500 })).includes(present(second, 'job').id),
      false,
      'the successor starts',
    );
    clock.set(retry.startAt);
    const again = (await claimOne(store, { definitions: [{ ...TRANSFER, revision: 1 }], queues: null })).job;
    check([present(first, 'job').id, present(other, 'job').id].includes(again.id), 'a head runs');
  },

  'the dead free their lane: the successor runs, and the dead one waits for a person': async ({ store }) => {
    const dead = await runningJob(store, { orderingKey: 'alice', maxAttempts: 1 });
    const next = await enqueueOne(store, { orderingKey: 'alice' });
    same(await claimIds(store, { max: 500 }), [], 'ids beside the running head');
    stands(accepted(await settleOne(store, dead, 'retryable'), 'the last attempt'), STATE.DEAD_LETTERED);
    same(await claimIds(store, { max: 500 }), [next.id], 'ids once it is dead');
  },

  'a retry past the deadline is not made: the job dies where it stands, and its lane goes on': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store, {
      orderingKey: 'alice',
      deadline: clock.now() + 500,
      backoffBaseMs: 500,
    });
    const next = await enqueueOne(store, { orderingKey: 'alice' });
    const dead = stands(accepted(await settleOne(store, job, 'retryable'), 'the retry'), STATE.DEAD_LETTERED);
    same(dead.cause, 'retry_after_deadline', 'cause');
    same(await claimIds(store), [next.id], 'ids claimed');
  },

  'a key is used again with other content: refused while its job lives, when it ended, and when it was pruned':
    async ({ store, clock }) => {
      const idempotencyKey = unique('invoice');
      const job = await runningJob(store, { idempotencyKey, payload: { cents: 7 } });
      const conflict = { status: 'refused', refused: 'conflict', id: job.id };
      const other = [jobRequest({ idempotencyKey, payload: { cents: 8 } })];
      same(only(await store.enqueue(other), 'verdicts'), conflict, 'while it runs');
      await succeed(store, job);
      same(only(await store.enqueue(other), 'verdicts'), conflict, 'when it has ended');
      clock.advance(limits.keepSucceededMsDefault);
      same((await store.prune({ by: OPERATOR })).jobs, 1, 'jobs pruned');
      same(only(await store.enqueue(other), 'verdicts'), conflict, 'when it was pruned');
      same((await store.find({})).jobs, [], 'jobs stored');
    },

  'a job that snoozes for ever is buried by the bound of its deliveries': async ({ store, clock }) => {
    const { id } = await enqueueOne(store, { maxAttempts: 1 });
    let deliveries = 0;
    for (;;) {
      const { job } = await claimOne(store);
      deliveries = job.delivery;
      const until = clock.now() + 1;
      const after = accepted(await settleOne(store, job, 'snoozed', { until }), `snooze ${deliveries}`);
      if (after.endedAt !== null) break;
      check(deliveries < limits.deliveriesSpare + 2, 'a job snoozes for ever');
      clock.set(until);
    }
    const dead = stands(await jobOf(store, id), STATE.DEAD_LETTERED);
    same(
      [dead.cause, deliveries],
      ['deliveries_exhausted', limits.deliveriesSpare + 1],
      'cause and deliveries',
    );
  },

  'an uncertain attempt that is idempotent runs again by policy, and both are on record': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store);
    const waiting = accepted(
      await settleOne(store, job, 'uncertain', { report: 'timeout' }),
      'the settlement',
    );
    clock.set(stands(waiting, STATE.SCHEDULED).startAt);
    await succeed(store, (await claimOne(store)).job);
    const facts = ['claimed', 'begun', 'settled', 'retry_decided', 'claimed', 'begun', 'settled'];
    same(await factTypes(store, job.id), facts, 'facts');
  },

  'a clock that ran far ahead and was put right leaves no immortal lease': async ({ store, clock }) => {
    const start = clock.now();
    const year = 365 * 24 * 3_600_000;
    clock.set(start + year);
    const job = await runningJob(store, { idempotent: true });
    clock.set(start + limits.clockToleranceMs);
    const waiting = await enqueueOne(store, { queue: 'other' });
    same(
      (await claimOne(store, { queues: ['other'] })).job.id,
      waiting.id,
      'id claimed after the correction',
    );
    clock.advance(LEASE_MS);
    same((await claimIds(store, { max: 500 })).includes(job.id), true, 'the lost job claimed a lease later');
    check((await factTypes(store, job.id)).includes('clock_corrected'), 'the correction is on record');
  },

  'a clock that was put right does not lose its history: the store restarts, and what had ended stays ended':
    async (opened) => {
      const { clock } = opened;
      const start = clock.now();
      clock.set(start + 1_000_000);
      const done = await succeed(opened.store, await runningJob(opened.store));
      clock.set(start);
      const { id } = await enqueueOne(opened.store);
      const { store } = await opened.reopen();
      same(await jobOf(store, done.id), done, 'the job that had ended');
      same(await claimIds(store), [id], 'ids claimed');
    },

  'a retry that was reckoned from a clock that ran ahead waits its delay and not a year': async ({
    store,
    clock,
  }) => {
    const start = clock.now();
    clock.set(start + 1_000_000);
    const job = await runningJob(store);
    const retry = accepted(await settleOne(store, job, 'retryable', { delayMs: 2_000 }), 'the retry');
    clock.set(start);
    await store.lapse(500);
    const corrected = stands(await jobOf(store, job.id), STATE.SCHEDULED);
    same([retry.startAt, corrected.startAt], [start + 1_002_000, start + 2_000], 'start before and after');
    clock.set(start + 2_000);
    same(await claimIds(store), [job.id], 'ids claimed after the delay');
  },

  'a clock a little behind is not followed: no tick falls, and no lease grows': async ({ store, clock }) => {
    const start = clock.now();
    clock.set(start + limits.clockToleranceMs);
    const job = await runningJob(store);
    clock.set(start);
    const next = await enqueueOne(store);
    same(next.submission.admittedAt, start + limits.clockToleranceMs, 'tick of the next commit');
    const leased = await leaseOne(store);
    same(leased.lease?.expiresAt, job.lease?.expiresAt, 'end of the next lease');
    same((await factTypes(store, job.id)).includes('clock_corrected'), false, 'a correction on record');
  },

  'a rolling deploy: an older worker leaves newer jobs alone, and a newer one takes both': async ({
    store,
  }) => {
    const [old, newer] = await enqueueMany(store, [{ revision: 1 }, { revision: 2 }]);
    const before = { definitions: [{ ...TRANSFER, revision: 1 }], max: 500 };
    const after = { definitions: [{ ...TRANSFER, revision: 2 }], max: 500 };
    same(await claimIds(store, before), [present(old, 'job').id], 'ids the older worker gets');
    stands(await jobOf(store, present(newer, 'job').id), STATE.PENDING);
    await succeed(store, await jobOf(store, present(old, 'job').id));
    const again = await enqueueOne(store, { revision: 1 });
    same(await claimIds(store, after), [present(newer, 'job').id, again.id], 'ids the newer worker gets');
  },

  'a rollback strands what the newer release admitted: shown as such, and never discarded': async ({
    store,
    clock,
  }) => {
    const definition = { kind: 'transfer', revision: 1, schemaDigest: null, normalisation: 'none' };
    await store.register({ worker: 'older', definitions: [definition] });
    const { id } = await enqueueOne(store, { revision: 2 });
    same((await store.counts()).stranded, 1, 'stranded');
    same(
      present(await store.explain(id, [{ ...TRANSFER, revision: 1 }]), 'why').reason,
      'revision_unknown',
      'why',
    );
    clock.advance(limits.keepKeysForMsDefault);
    await store.lapse(500);
    await store.prune({ by: OPERATOR, undismissed: true });
    stands(await jobOf(store, id), STATE.PENDING);
  },

  'a job that is not due holds no lease, however often it is asked for': async ({ store, clock }) => {
    const { id } = await enqueueOne(store, { delayMs: LEASE_MS * 6 });
    for (let turn = 0; turn < 6; turn += 1) {
      same(await claimIds(store, { worker: `idle-${turn}` }), [], 'ids claimed before it is due');
      clock.advance(LEASE_MS);
    }
    const { job } = await claimOne(store);
    same([job.id, job.attempt, job.delivery], [id, 1, 1], 'id, attempt and delivery');
  },

  'editing a saved snapshot, or what a store was restored from, changes neither store': async (opened) => {
    const job = await runningJob(opened.store, { payload: { cents: 7 } });
    const snapshot = await opened.store.snapshot();
    const target = await opened.fresh();
    await target.store.restore(snapshot, { as: 'restart', by: OPERATOR });
    const before = structuredClone([await viewOf(opened.store, job.id), await viewOf(target.store, job.id)]);
    const row = present(snapshot.jobs[0], 'job of the snapshot');
    Reflect.set(row, 'payload', '{"cents":700}');
    Reflect.set(row.job, 'state', STATE.SUCCEEDED);
    Reflect.set(row.job.submission, 'idempotent', false);
    Reflect.set(snapshot.counters, 'nextToken', 1);
    Reflect.set(snapshot.application, 'balance', 7_000);
    same([await viewOf(opened.store, job.id), await viewOf(target.store, job.id)], before, 'both stores');
    await succeed(target.store, job);
    stands(await jobOf(opened.store, job.id), STATE.RUNNING, 'in the store the snapshot was taken from');
  },

  'a job is redriven by two operators at once: one new job, and the other operator is shown it': async ({
    store,
  }) => {
    const old = await deadJob(store);
    const verdicts = await Promise.all(
      ['olga', 'piet'].map((actor) => store.redrive({ id: old.id, by: { actor } })),
    );
    const loser = present(
      verdicts.find(({ ok }) => !ok),
      'loser',
    );
    refused(loser, 'already_redriven', 'the second operator');
    const { redrivenTo } = await viewOf(store, old.id);
    same(
      (await store.find({})).jobs.map(({ job }) => job.id),
      [old.id, redrivenTo],
      'jobs stored',
    );
  },
});
