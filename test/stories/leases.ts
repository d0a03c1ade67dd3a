/** Stories of custody: a lease ends at one tick for everybody, and who lost it can neither win nor disturb. */
import { limits, STATE } from '../../src/core/index.ts';
import {
  claimIds,
  claimOne,
  claimRequest,
  enqueueMany,
  enqueueOne,
  factsFor,
  holderOf,
  internalJobs,
  jobOf,
  LEASE_MS,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
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

export const leaseStories: readonly ConformanceCase[] = stories({
  'a lease is over at exactly its last tick: for its holder, for rivals and for every verb': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store);
    const end = present(job.lease, 'lease').expiresAt;
    clock.set(end - 1);
    same(await claimIds(store, { worker: 'rival' }), [], 'ids a rival gets just before');
    const [kept] = await store.extend([{ ...holderOf(job), extendMs: 1 }]);
    same(kept?.status, 'extended', 'a renewal just before');
    clock.set(end);
    const [lost] = await store.extend([{ ...holderOf(job), extendMs: LEASE_MS }]);
    same(lost?.status, 'lost', 'a renewal at the end');
    refused(await settleOne(store, job, 'succeeded'), 'lease_lost', 'a settlement at the end');
    refused(await store.transact(holderOf(job), () => 1), 'lease_lost', 'a transaction at the end');
    same(await claimIds(store, { worker: 'rival' }), [job.id], 'ids a rival gets at the end');
  },

  'a zombie settles over the run of the new holder: nothing changes, and what it said is kept': async ({
    store,
    clock,
  }) => {
    const zombie = await runningJob(store);
    clock.advance(LEASE_MS);
    const holder = (await claimOne(store, { worker: 'worker-b' })).job;
    refused(await settleOne(store, zombie, 'permanent', { report: 'zombie' }), 'stale_token', 'the zombie');
    same(await jobOf(store, holder.id), holder, 'the run of the holder');
    await succeed(store, holder, '"holder"');
    refused(
      await settleOne(store, zombie, 'succeeded', { report: '"again"' }),
      'stale_token',
      'the zombie again',
    );
    const view = await viewOf(store, holder.id);
    same([stands(view.job, STATE.SUCCEEDED).attempt, view.report], [2, '"holder"'], 'attempt and result');
    same(
      view.testimony.map(({ report }) => report),
      ['zombie', '"again"'],
      'testimony',
    );
    same([view.contradictions, view.needsYou], [1, 'contradiction'], 'what is shown');
  },

  'sixteen workers race for one expired lease: one gets it, and fifteen get nothing': async ({
    store,
    clock,
  }) => {
    const lost = await runningJob(store);
    clock.advance(LEASE_MS);
    const workers = Array.from({ length: 16 }, (_, index) => `racer-${index}`);
    const claims = await Promise.all(workers.map((worker) => store.claim(claimRequest({ worker, max: 5 }))));
    const { job } = only(claims.flat(), 'deliveries');
    same([job.id, job.attempt], [lost.id, 2], 'id and attempt');
    const settlements = await Promise.all(
      workers.map((worker) =>
        store.settle([{ ...holderOf(lost), worker, outcome: 'succeeded', report: `"${worker}"` }]),
      ),
    );
    same(settlements.flatMap(({ settled }) => settled).filter(({ ok }) => ok).length, 0, 'zombies accepted');
    stands(await jobOf(store, job.id), STATE.RUNNING);
  },

  'sixteen workers drain one lane: no two ever run beside each other, and order is kept': async ({
    store,
  }) => {
    const ids = (
      await enqueueMany(
        store,
        Array.from({ length: 12 }, () => ({ orderingKey: 'alice' })),
      )
    ).map(({ id }) => id);
    const order: number[] = [];
    while (order.length < ids.length) {
      const workers = Array.from({ length: 16 }, (_, index) => `racer-${index}`);
      const claims = await Promise.all(
        workers.map((worker) => store.claim(claimRequest({ worker, max: 3 }))),
      );
      const { job } = only(claims.flat(), 'deliveries at one time');
      order.push(job.id);
      await succeed(store, job);
    }
    same(order, ids, 'order of runs');
  },

  'the last attempt is lost: idempotent, the job is dead and says that its outcome is unknown': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store, { maxAttempts: 1 });
    clock.advance(LEASE_MS);
    await store.lapse(500);
    const dead = stands(await jobOf(store, job.id), STATE.DEAD_LETTERED);
    same([dead.cause, dead.outcomeUnknown], ['lease_expired', true], 'cause and doubt');
    same((await viewOf(store, job.id)).needsYou, 'outcome_unknown', 'needs you');
  },

  'the last attempt is lost: not idempotent, the job is UNCERTAIN and nobody buries it': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store, { maxAttempts: 1, idempotent: false });
    clock.advance(LEASE_MS);
    await store.lapse(500);
    stands(await jobOf(store, job.id), STATE.UNCERTAIN);
    clock.advance(limits.keepKeysForMsDefault);
    await store.lapse(500);
    await store.prune({ by: OPERATOR, undismissed: true });
    same(await claimIds(store, { max: 500 }), [], 'ids claimed later');
    stands(await jobOf(store, job.id), STATE.UNCERTAIN);
  },

  'deadline and lease pass together: the deadline is what counts': async ({ store, clock }) => {
    const at = clock.now() + LEASE_MS;
    const idempotent = await runningJob(store, { deadline: at });
    const unsafe = await runningJob(store, { deadline: at, idempotent: false });
    clock.set(at);
    same(await claimIds(store, { max: 500 }), [], 'ids claimed');
    const dead = stands(await jobOf(store, idempotent.id), STATE.DEAD_LETTERED);
    const doubt = stands(await jobOf(store, unsafe.id), STATE.UNCERTAIN);
    same([dead.cause, doubt.cause], ['deadline_passed', 'deadline_passed'], 'causes');
  },

  'a stop was wanted and then the worker was lost: idempotent, nothing runs again': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store);
    accepted(await store.cancel({ id: job.id, by: OPERATOR }), 'the cancellation');
    clock.advance(LEASE_MS);
    same(await claimIds(store), [], 'ids claimed');
    stands(await jobOf(store, job.id), STATE.CANCELLED);
    same((await viewOf(store, job.id)).needsYou, 'outcome_unknown', 'needs you');
  },

  'a stop was wanted and then the worker was lost: not idempotent, a person still has to find out': async (
    opened,
  ) => {
    const { store, clock } = opened;
    const job = await runningJob(store, { idempotent: false, reconciles: true });
    accepted(await store.cancel({ id: job.id, by: OPERATOR }), 'the cancellation');
    clock.advance(LEASE_MS);
    await store.lapse(500);
    stands(await jobOf(store, job.id), STATE.UNCERTAIN);
    same((await internalJobs(store, job.id)).length, 1, 'questions asked');
    const decision = { ...holderOf(job), decision: 'succeeded', by: OPERATOR } as const;
    stands(
      accepted(await store.reconcile(decision), 'the decision'),
      STATE.SUCCEEDED,
      'since a success stands',
    );
  },

  'the lost worker answers late: its word decides, and the question asked meanwhile is withdrawn': async (
    opened,
  ) => {
    const { store } = opened;
    const job = await uncertainJob(opened, { reconciles: true });
    refused(await settleOne(store, job, 'succeeded', { report: '"late"' }), 'lease_lost', 'the late answer');
    const view = await viewOf(store, job.id);
    same(
      [stands(view.job, STATE.SUCCEEDED).cause, view.report],
      ['late_report', '"late"'],
      'cause and result',
    );
    stands(only(await internalJobs(store, job.id), 'questions'), STATE.CANCELLED);
  },

  'a person decides while the reconciler asks: one decision stands, and the other is told so': async (
    opened,
  ) => {
    const { store, clock } = opened;
    const job = await uncertainJob(opened, { reconciles: true });
    clock.set(only(await internalJobs(store, job.id), 'questions').startAt);
    const asking = (await claimOne(store)).job;
    const person = { ...holderOf(job), decision: 'failed', by: OPERATOR } as const;
    const answer = {
      ...holderOf(job),
      decision: 'succeeded',
      by: { actor: 'reconciler', role: 'reconciler' },
      internal: { ...holderOf(asking), worker: 'worker-a' },
    } as const;
    const verdicts = await Promise.all([store.reconcile(person), store.reconcile(answer)]);
    same(verdicts.filter(({ ok }) => ok).length, 1, 'decisions accepted');
    const facts = (await factsFor(store, job.id)).filter(({ type }) => type === 'reconciled');
    same(facts.length, 1, 'decisions in the history');
    accepted(await settleOne(store, asking, 'succeeded').then(orAccepted), 'the question ends');
  },

  'a worker that was asleep wakes into a store that has moved on, and learns it at every step': async (
    opened,
  ) => {
    const { store, clock } = opened;
    const job = await runningJob(store, { idempotent: false });
    clock.advance(LEASE_MS * 60);
    await store.lapse(500);
    const decision = { ...holderOf(job), decision: 'failed', by: OPERATOR } as const;
    const decided = accepted(await store.reconcile(decision), 'the decision');
    const [renewal] = await store.extend([{ ...holderOf(job), extendMs: LEASE_MS }]);
    same(renewal?.status, 'lost', 'its renewal');
    refused(await store.transact(holderOf(job), () => 1), 'lease_lost', 'its transaction');
    refused(await settleOne(store, job, 'succeeded'), 'lease_lost', 'its settlement');
    same(await jobOf(store, job.id), decided, 'the decided job');
    same((await viewOf(store, job.id)).contradictions, 1, 'contradictions');
  },

  'a restart gives no lease to another, and no dead worker keeps one': async (opened) => {
    const held = await runningJob(opened.store, {}, { worker: 'before' });
    const { id } = await enqueueOne(opened.store);
    const { store } = await opened.reopen();
    same(await claimIds(store, { max: 500, worker: 'after' }), [id], 'ids claimed at once');
    opened.clock.advance(LEASE_MS);
    same(
      (await claimIds(store, { max: 500, worker: 'after' })).includes(held.id),
      true,
      'the lost one claimed',
    );
  },
});

/** The reconciler may have settled its question with its decision; saying so again must do no harm. */
function orAccepted(verdict: Awaited<ReturnType<typeof settleOne>>): Awaited<ReturnType<typeof settleOne>> {
  check(verdict.ok, `the question must end, and was refused: ${verdict.ok ? '' : verdict.refused}`);
  return { ...verdict, duplicate: false };
}
