/** Prune: only what has ended, is old enough and needs nobody goes; what protects others stays behind. */
import { type Job, limits, STATE } from '../../core/index.ts';
import type { Pruned, PruneRequest, Store } from '../../store/store.ts';
import {
  addCents,
  balanceOf,
  claimOne,
  deadJob,
  enqueueOne,
  failedJob,
  internalJobs,
  jobOf,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
  viewOf,
} from './build.ts';
import { accepted, check, only, present, refused, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

async function prune(store: Store, options: Partial<PruneRequest> = {}): Promise<Pruned> {
  return store.prune({ by: OPERATOR, ...options });
}

async function cancelled(store: Store): Promise<Job> {
  const { id } = await enqueueOne(store);
  return accepted(await store.cancel({ id, by: OPERATOR }), 'the cancellation');
}

const NOW = { succeededAfterMs: 0, cancelledAfterMs: 0, failedAfterMs: 0 } as const;

export const pruneCases: readonly ConformanceCase[] = casesOf('prune', {
  'what succeeded, or was cancelled without having run, goes at exactly its age': async ({
    store,
    clock,
  }) => {
    const done = await succeed(store, await runningJob(store));
    const gone = await cancelled(store);
    clock.advance(limits.keepSucceededMsDefault - 1);
    same(await prune(store), { jobs: 0, keys: 0, effects: 0, more: false }, 'pruned a millisecond too early');
    clock.advance(1);
    same((await prune(store)).jobs, 2, 'jobs pruned');
    for (const { id } of [done, gone]) {
      same([await store.get(id), await store.evidence(id)], [null, null], `what is left of job ${id}`);
      refused(await store.cancel({ id, by: OPERATOR }), 'unknown_job', 'cancelling a pruned job');
    }
    same(await store.find({ internal: true }), { jobs: [], nextAfterId: null }, 'what is found');
  },

  'ages can be set for each end, and null keeps it for ever': async ({ store, clock }) => {
    const done = await succeed(store, await runningJob(store));
    const gone = await cancelled(store);
    clock.advance(100);
    same((await prune(store, { succeededAfterMs: 101, cancelledAfterMs: 100 })).jobs, 1, 'jobs pruned');
    same([await store.get(gone.id), (await jobOf(store, done.id)).id], [null, done.id], 'what is left');
    clock.advance(limits.keepKeysForMsDefault * 12);
    same((await prune(store, { succeededAfterMs: null })).jobs, 0, 'jobs pruned with null');
    same((await prune(store)).jobs, 1, 'jobs pruned with the default');
  },

  'what failed or died goes only once it was dismissed, or is asked for': async ({ store, clock }) => {
    const dead = await deadJob(store);
    const failed = await failedJob(store);
    clock.advance(limits.keepKeysForMsDefault);
    same((await prune(store)).jobs, 0, 'jobs pruned that nobody looked at');
    accepted(await store.dismiss({ id: dead.id, by: OPERATOR }), 'dismissing');
    same((await prune(store)).jobs, 1, 'jobs pruned once one is dismissed');
    same([await store.get(dead.id), (await jobOf(store, failed.id)).id], [null, failed.id], 'what is left');
    same((await prune(store, { undismissed: true })).jobs, 1, 'jobs pruned when asked for');
  },

  'a dismissed job still waits for its age': async ({ store, clock }) => {
    const dead = await deadJob(store);
    accepted(await store.dismiss({ id: dead.id, by: OPERATOR }), 'dismissing');
    same((await prune(store)).jobs, 0, 'jobs pruned at once');
    clock.advance(50);
    same((await prune(store, { failedAfterMs: 51 })).jobs, 0, 'jobs pruned before their age');
    same((await prune(store, { failedAfterMs: 50 })).jobs, 1, 'jobs pruned at their age');
  },

  'what is unresolved never goes, and what is UNCERTAIN least of all': async (opened) => {
    const { store, clock } = opened;
    const uncertain = await uncertainJob(opened);
    const waiting = await enqueueOne(store);
    const running = await runningJob(store, { queue: 'other' }, { leaseMs: limits.leaseMsMax });
    clock.advance(1_000);
    same((await prune(store, { ...NOW, undismissed: true })).jobs, 0, 'jobs pruned');
    for (const job of [uncertain, waiting, running]) same(await jobOf(store, job.id), job, `job ${job.id}`);
  },

  'what needs somebody stays, in whatever way it ended': async (opened) => {
    const { store, clock } = opened;
    const retried = await runningJob(store);
    accepted(await settleOne(store, retried, 'retryable'), 'the retry');
    accepted(await store.cancel({ id: retried.id, by: OPERATOR }), 'the cancellation');
    same((await viewOf(store, retried.id)).needsYou, 'compensation_required', 'the cancelled job needs you');
    const done = await runningJob(store);
    await succeed(store, done);
    refused(
      await settleOne(store, done, 'permanent', { report: 'no' }),
      'already_settled',
      'the contradiction',
    );
    same((await viewOf(store, done.id)).needsYou, 'contradiction', 'the succeeded job needs you');
    clock.advance(limits.keepKeysForMsDefault);
    same((await prune(store)).jobs, 0, 'jobs pruned');
    for (const { id } of [retried, done]) accepted(await store.dismiss({ id, by: OPERATOR }), 'dismissing');
    same((await prune(store)).jobs, 2, 'jobs pruned once somebody looked');
  },

  'a job whose compensation still has to run stays': async ({ store, clock }) => {
    const failed = await failedJob(store, { compensates: true });
    accepted(await store.dismiss({ id: failed.id, by: OPERATOR }), 'dismissing');
    clock.advance(limits.keepKeysForMsDefault);
    same((await prune(store)).jobs, 0, 'jobs pruned before the compensation');
    const undo = only(await internalJobs(store, failed.id), 'compensations');
    const { job } = await claimOne(store);
    same(job.id, undo.id, 'id claimed');
    await succeed(store, job);
    check((await prune(store)).jobs >= 1, 'the job is pruned after the compensation');
    same(await store.get(failed.id), null, 'the failed job');
  },

  'pages are no longer than asked for, and calling again reaches all': async ({ store }) => {
    for (let job = 0; job < 5; job += 1) await cancelled(store);
    const pages = [await prune(store, { ...NOW, limit: 2 }), await prune(store, { ...NOW, limit: 2 })];
    pages.push(await prune(store, { ...NOW, limit: 2 }));
    same(
      pages.map(({ jobs, more }) => [jobs, more]),
      [
        [2, true],
        [2, true],
        [1, false],
      ],
      'pages',
    );
  },

  'when no more is said to be found, another call finds nothing': async ({ store, clock }) => {
    const failed = await failedJob(store, { compensates: true, idempotencyKey: 'refund-1' });
    await succeed(store, (await claimOne(store)).job);
    accepted(await store.dismiss({ id: failed.id, by: OPERATOR }), 'dismissing');
    clock.advance(limits.keepKeysForMsDefault);
    for (let call = 0; (await prune(store)).more; call += 1) check(call < 5, 'pruning comes to an end');
    same(await prune(store), { jobs: 0, keys: 0, effects: 0, more: false }, 'pruned by another call');
    same((await store.find({ internal: true })).jobs, [], 'jobs stored');
  },

  'an effect stays for as long as a job of its lineage does: pruning repeats nothing': async (opened) => {
    const { store } = opened;
    const old = await runningJob(store);
    await addCents(opened, old, 'charge', 7);
    accepted(await settleOne(store, old, 'permanent'), 'the failure');
    const verdict = await store.redrive({ id: old.id, by: OPERATOR });
    check(verdict.ok, 'the redrive is accepted');
    const first = await prune(store, { ...NOW, undismissed: true });
    same([first.jobs, first.effects, await store.get(old.id)], [1, 0, null], 'pruned, and the old job');
    const { job } = await claimOne(store);
    same(await addCents(opened, job, 'charge', 7), true, 'done before by the pruned job');
    await succeed(store, job);
    same(await balanceOf(opened), 7, 'balance');
    same((await prune(store, NOW)).effects, 1, 'effects pruned with the last job of their lineage');
  },

  'no id returns after its job was pruned': async (opened) => {
    const gone = await cancelled(opened.store);
    await prune(opened.store, NOW);
    const { store } = await opened.reopen();
    const next = await enqueueOne(store);
    check(next.id > gone.id, `id ${next.id} must be above ${gone.id}`);
  },

  'a head that was pruned leaves its lane in order': async ({ store }) => {
    const head = await runningJob(store, { orderingKey: 'alice' });
    const second = await enqueueOne(store, { orderingKey: 'alice' });
    await enqueueOne(store, { orderingKey: 'alice' });
    await succeed(store, head);
    same((await prune(store, NOW)).jobs, 1, 'jobs pruned');
    const { job } = await claimOne(store, { max: 500 });
    same(stands(job, STATE.RUNNING).id, second.id, 'id claimed');
  },

  'pruning is an act, with who and why': async ({ store }) => {
    await cancelled(store);
    await prune(store, { ...NOW, by: { actor: 'olga', reason: 'disk is full' } });
    const act = present((await store.acts()).at(-1), 'act');
    same([act.act, act.actor, act.reason], ['prune', 'olga', 'disk is full'], 'act');
  },

  'ages and pages outside their bounds throw, and nothing is pruned': async ({ store }) => {
    await cancelled(store);
    const bad = [
      { succeededAfterMs: -1 },
      { cancelledAfterMs: 0.5 },
      { failedAfterMs: Number.NaN },
      { limit: 0 },
    ];
    for (const options of [...bad, { limit: limits.prunePageMax + 1 }]) {
      const what = `pruning with ${JSON.stringify(options)}`;
      await rejects(() => prune(store, { ...NOW, ...options }), 'invalid_input', what);
    }
    same((await store.find({})).jobs.length, 1, 'jobs stored');
  },
});
