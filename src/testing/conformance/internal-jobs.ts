/** Internal jobs: who asks about a lost attempt, or undoes one, exists exactly as long as that is to be done. */
import { type Job, limits, STATE } from '../../core/index.ts';
import type { ReconcileVerdict, Store } from '../../store/store.ts';
import {
  claimIds,
  claimOne,
  deadJob,
  enqueueOne,
  failedJob,
  holderOf,
  internalJobs,
  jobOf,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
  viewOf,
  WORKER,
} from './build.ts';
import { accepted, check, only, refused, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf, type OpenedStore } from './harness.ts';

async function onlyInternal(store: Store, parent: Job): Promise<Job> {
  return only(await internalJobs(store, parent.id), 'internal jobs of the parent');
}

/** An UNCERTAIN job whose reconciler runs now. */
async function askedJob(opened: OpenedStore): Promise<readonly [Job, Job]> {
  const { store, clock } = opened;
  const parent = await uncertainJob(opened, { reconciles: true });
  clock.set((await onlyInternal(store, parent)).startAt);
  const { job } = await claimOne(store);
  same(job.submission.internal?.parentId, parent.id, 'parent of what is claimed');
  return [parent, job];
}

async function answer(
  store: Store,
  parent: Job,
  asking: Job,
  decision: 'succeeded' | 'retry',
): Promise<ReconcileVerdict> {
  const by = { actor: 'reconciler', role: 'reconciler' } as const;
  return store.reconcile({
    ...holderOf(parent),
    decision,
    by,
    internal: { ...holderOf(asking), worker: WORKER },
  });
}

export const internalJobCases: readonly ConformanceCase[] = casesOf('internal jobs', {
  'a lost attempt is asked about in the same commit, at the earliest when its holder must be gone': async (
    opened,
  ) => {
    const { store, clock } = opened;
    const parent = await uncertainJob(opened, {
      reconciles: true,
      reconcileAfterMs: 700,
      priority: -5,
      orderingKey: 'alice',
      queue: 'slow',
    });
    const job = stands(await onlyInternal(store, parent), STATE.SCHEDULED);
    same(job.startAt, clock.now() + 700, 'start');
    const { submission } = job;
    const link = { purpose: 'reconcile', parentId: parent.id, parentToken: parent.token };
    same(submission.internal, link, 'link');
    same(submission.idempotencyKey, `custody:${parent.id}:${parent.token}:reconcile`, 'key');
    same(
      [submission.kind, submission.revision, submission.queue],
      ['transfer', 1, 'slow'],
      'what can run it',
    );
    same(
      [submission.orderingKey, submission.deadline, submission.idempotent],
      [null, null, true],
      'contract',
    );
    same(
      [submission.priority, submission.maxAttempts],
      [limits.priorityInternal, limits.internalAttemptsMax],
      'policy',
    );
  },

  'an attempt that says itself that it is uncertain is asked about too, and a decided retry is not': async ({
    store,
  }) => {
    const resting = await runningJob(store, { reconciles: true, idempotent: false });
    accepted(await settleOne(store, resting, 'uncertain'), 'the settlement');
    same((await internalJobs(store, resting.id)).length, 1, 'internal jobs of the resting one');
    const retried = await runningJob(store, { reconciles: true });
    accepted(await settleOne(store, retried, 'uncertain'), 'the settlement');
    same(await internalJobs(store, retried.id), [], 'internal jobs of the retried one');
  },

  'without a reconciler nobody is asked: the job stays with a person': async (opened) => {
    const parent = await uncertainJob(opened);
    same(await internalJobs(opened.store, parent.id), [], 'internal jobs');
    same((await viewOf(opened.store, parent.id)).needsYou, 'uncertain', 'needs you');
  },

  'internal jobs are not found among the jobs of the program unless asked for': async (opened) => {
    const { store } = opened;
    const parent = await uncertainJob(opened, { reconciles: true });
    const ids = (await store.find({})).jobs.map(({ job }) => job.id);
    same(ids, [parent.id], 'ids found');
  },

  'the answer of a reconciler decides its parent and settles itself in one commit': async (opened) => {
    const { store } = opened;
    const [parent, asking] = await askedJob(opened);
    stands(accepted(await answer(store, parent, asking, 'succeeded'), 'the answer'), STATE.SUCCEEDED);
    stands(await jobOf(store, asking.id), STATE.SUCCEEDED);
    same(await claimIds(store, { max: 500 }), [], 'ids claimed afterwards');
  },

  'a reconciler that lost its own custody decides nothing': async (opened) => {
    const { store, clock } = opened;
    const [parent, asking] = await askedJob(opened);
    clock.advance(1_000);
    refused(await answer(store, parent, asking, 'succeeded'), 'lease_lost', 'the late answer');
    stands(await jobOf(store, parent.id), STATE.UNCERTAIN);
    const again = (await claimOne(store)).job;
    same(again.id, asking.id, 'id of who asks next');
    refused(await answer(store, parent, asking, 'succeeded'), 'stale_token', 'the answer of the zombie');
    accepted(await answer(store, parent, again, 'succeeded'), 'the answer of the holder');
  },

  'only the reconcile job of this attempt may bring its answer': async (opened) => {
    const { store } = opened;
    const [parent] = await askedJob(opened);
    const other = await runningJob(store, { queue: 'other' });
    await rejects(
      () => answer(store, parent, other, 'succeeded'),
      'invalid_input',
      'an answer by another job',
    );
    stands(await jobOf(store, parent.id), STATE.UNCERTAIN);
    same(await jobOf(store, other.id), other, 'the other job');
  },

  'a retry that is not permitted leaves parent and reconciler as they were, so it can ask again': async (
    opened,
  ) => {
    const { store } = opened;
    const [parent, asking] = await askedJob(opened);
    refused(await answer(store, parent, asking, 'retry'), 'retry_not_permitted', 'the answer');
    same(await jobOf(store, asking.id), asking, 'the running reconcile job');
    stands(accepted(await settleOne(store, asking, 'retryable'), 'asking again later'), STATE.SCHEDULED);
    stands(await jobOf(store, parent.id), STATE.UNCERTAIN);
  },

  'a job that is decided otherwise is not asked about any more': async (opened) => {
    const { store, clock } = opened;
    const parent = await uncertainJob(opened, { reconciles: true });
    const decision = { ...holderOf(parent), decision: 'failed', by: OPERATOR } as const;
    accepted(await store.reconcile(decision), 'the decision');
    stands(await onlyInternal(store, parent), STATE.CANCELLED);
    clock.advance(100_000);
    same(await claimIds(store, { max: 500 }), [], 'ids claimed later');
  },

  'a late report that decides cancels the question too': async (opened) => {
    const parent = await uncertainJob(opened, { reconciles: true });
    refused(await settleOne(opened.store, parent, 'succeeded'), 'lease_lost', 'the late report');
    stands(await onlyInternal(opened.store, parent), STATE.CANCELLED);
  },

  'a reconciler that runs while its parent is decided is asked to stop, and its answer is refused': async (
    opened,
  ) => {
    const { store } = opened;
    const [parent, asking] = await askedJob(opened);
    const decision = { ...holderOf(parent), decision: 'failed', by: OPERATOR } as const;
    const decided = accepted(await store.reconcile(decision), 'the decision of a person');
    same(stands(await jobOf(store, asking.id), STATE.RUNNING).cancelRequested, true, 'cancel requested');
    refused(await answer(store, parent, asking, 'succeeded'), 'terminal', 'the answer');
    same(await jobOf(store, parent.id), decided, 'the decided job');
    stands(accepted(await settleOne(store, asking, 'retryable'), 'the reconciler ends'), STATE.CANCELLED);
  },

  'each lost attempt is asked about anew': async (opened) => {
    const { store, clock } = opened;
    const job = await runningJob(store, { reconciles: true, deadline: clock.now() + 60_000 });
    accepted(await settleOne(store, job, 'uncertain', { delayMs: 60_000 }), 'the first loss');
    const retry = { ...holderOf(job), decision: 'retry', by: OPERATOR } as const;
    accepted(await store.reconcile(retry), 'the decision');
    const again = (await claimOne(store)).job;
    accepted(await settleOne(store, again, 'uncertain', { delayMs: 60_000 }), 'the second loss');
    const asked = await internalJobs(store, job.id);
    same(
      asked.map(({ state }) => state),
      [STATE.CANCELLED, STATE.SCHEDULED],
      'states of the questions',
    );
    same(
      asked.map((one) => one.submission.internal?.parentToken),
      [job.token, again.token],
      'tokens asked about',
    );
  },

  'a job that ran and failed for good, or is cancelled, is compensated in the same commit': async ({
    store,
    clock,
  }) => {
    const failed = await failedJob(store, { compensates: true });
    const undo = stands(await onlyInternal(store, failed), STATE.PENDING);
    same(undo.submission.idempotencyKey, `custody:${failed.id}:${failed.token}:compensate`, 'key');
    same(undo.startAt, clock.now(), 'start');
    const retried = await runningJob(store, { compensates: true, queue: 'other' });
    accepted(await settleOne(store, retried, 'retryable'), 'the retry');
    accepted(await store.cancel({ id: retried.id, by: OPERATOR }), 'the cancellation');
    stands(await onlyInternal(store, retried), STATE.PENDING);
  },

  'a job that never ran, succeeded or died has nothing to compensate': async ({ store }) => {
    const never = await enqueueOne(store, { compensates: true, queue: 'never' });
    accepted(await store.cancel({ id: never.id, by: OPERATOR }), 'the cancellation');
    const done = await succeed(store, await runningJob(store, { compensates: true }));
    const dead = await deadJob(store, { compensates: true });
    for (const job of [never, done, dead]) same(await internalJobs(store, job.id), [], `of job ${job.id}`);
  },

  'a compensation that is required and has no hook needs somebody': async ({ store }) => {
    const failed = await failedJob(store);
    same(await internalJobs(store, failed.id), [], 'internal jobs');
    same((await viewOf(store, failed.id)).needsYou, 'compensation_required', 'needs you');
  },

  'a compensation that failed needs somebody, and one that went well needs nobody': async ({ store }) => {
    for (const [outcome, needsYou] of [
      ['succeeded', null],
      ['permanent', 'compensation_failed'],
    ] as const) {
      const failed = await failedJob(store, { compensates: true });
      same((await viewOf(store, failed.id)).needsYou, null, 'needs you while it is to be compensated');
      const undo = (await claimOne(store)).job;
      same(undo.submission.internal?.parentId, failed.id, 'parent of the compensation');
      accepted(await settleOne(store, undo, outcome), `the compensation ${outcome}`);
      same((await viewOf(store, failed.id)).needsYou, needsYou, `needs you after ${outcome}`);
    }
  },

  'internal jobs have no internal jobs of their own': async (opened) => {
    const { store, clock } = opened;
    const failed = await failedJob(store, { compensates: true, reconciles: true });
    const undo = (await claimOne(store)).job;
    accepted(await settleOne(store, undo, 'permanent'), 'the failing compensation');
    const lost = await uncertainJob(opened, { compensates: true, reconciles: true });
    clock.advance(100_000);
    const asking = (await claimOne(store)).job;
    accepted(await settleOne(store, asking, 'permanent'), 'the failing question');
    for (const parent of [failed, lost]) {
      const internal = await onlyInternal(store, parent);
      same(await internalJobs(store, internal.id), [], `internal jobs of job ${internal.id}`);
    }
  },

  'an internal job is retried within its own bound of attempts': async (opened) => {
    const { store, clock } = opened;
    await askedJob(opened);
    let asking = (await store.find({ internal: true, states: [STATE.RUNNING] })).jobs[0]?.job;
    for (let attempt = 1; attempt < limits.internalAttemptsMax; attempt += 1) {
      check(asking !== undefined, 'a question runs');
      const waiting = accepted(await settleOne(store, asking, 'retryable'), `attempt ${attempt}`);
      clock.set(stands(waiting, STATE.SCHEDULED).startAt);
      asking = (await claimOne(store)).job;
    }
    check(asking !== undefined, 'a question runs');
    stands(accepted(await settleOne(store, asking, 'retryable'), 'the last attempt'), STATE.DEAD_LETTERED);
  },

  'internal jobs are there after a restart, and exist once': async (opened) => {
    const parent = await uncertainJob(opened, { reconciles: true });
    const before = await onlyInternal(opened.store, parent);
    const { store } = await opened.reopen();
    await store.lapse(500);
    same(await onlyInternal(store, parent), before, 'the internal job');
  },
});
