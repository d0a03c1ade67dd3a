/** Reports that come twice, late or from a holder of the past: none disturbs who holds the job now, none is lost. */
import { type Job, limits, type Outcome, STATE } from '../../core/index.ts';
import type { Store } from '../../store/store.ts';
import {
  claimOne,
  factTypes,
  internalJobs,
  jobOf,
  LEASE_MS,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
  viewOf,
} from './build.ts';
import { accepted, check, duplicate, only, present, refused, same, stands } from './check.ts';
import { type ConformanceCase, casesOf, type OpenedStore } from './harness.ts';

/** A holder whose lease ended and whose job another worker runs now. */
async function zombieAndHolder({ store, clock }: OpenedStore): Promise<readonly [Job, Job]> {
  const zombie = await runningJob(store);
  clock.advance(LEASE_MS);
  const { job } = await claimOne(store, { worker: 'worker-b' });
  return [zombie, stands(job, STATE.RUNNING)];
}

async function late(store: Store, job: Job, outcome: Outcome, report: string): Promise<Job> {
  const verdict = await settleOne(store, job, outcome, { report });
  return present(refused(verdict, 'lease_lost', `a late report of ${outcome}`), 'job');
}

export const settleLateCases: readonly ConformanceCase[] = casesOf('settle', {
  'the same settlement again is a duplicate and changes nothing, also after a restart': async (opened) => {
    const job = await runningJob(opened.store);
    await succeed(opened.store, job, '{"a":1}');
    const before = await viewOf(opened.store, job.id);
    const again = { report: '{ "a": 1.0 }' };
    duplicate(await settleOne(opened.store, job, 'succeeded', again), 'the repetition');
    const { store } = await opened.reopen();
    duplicate(await settleOne(store, job, 'succeeded', again), 'the repetition after a restart');
    same(await viewOf(store, job.id), before, 'the job');
  },

  'a retry can be reported twice while it waits and is scheduled once': async ({ store, clock }) => {
    const job = await runningJob(store);
    const first = accepted(await settleOne(store, job, 'retryable', { report: 'down' }), 'the report');
    clock.advance(10);
    const again = duplicate(await settleOne(store, job, 'retryable', { report: 'down' }), 'the repetition');
    same(again, first, 'the job in both answers');
  },

  'another outcome or another result under a settled token is refused and kept as testimony': async ({
    store,
  }) => {
    const job = await runningJob(store);
    await succeed(store, job, '1');
    refused(await settleOne(store, job, 'succeeded', { report: '2' }), 'already_settled', 'another result');
    refused(await settleOne(store, job, 'permanent', { report: 'no' }), 'already_settled', 'another outcome');
    const view = await viewOf(store, job.id);
    same([stands(view.job, STATE.SUCCEEDED).version, view.report], [3, '1'], 'version and result');
    same(
      view.testimony.map(({ report }) => report),
      ['2', 'no'],
      'testimony',
    );
  },

  'a zombie that settles after its lease was reassigned changes nothing and is recorded': async (opened) => {
    const { store, clock } = opened;
    const [zombie, holder] = await zombieAndHolder(opened);
    const verdict = await settleOne(store, zombie, 'succeeded', { report: '"zombie"' });
    refused(verdict, 'stale_token', 'the settlement of the zombie');
    same(await jobOf(store, holder.id), holder, 'the run of the holder');
    const testimony = only((await viewOf(store, holder.id)).testimony, 'testimonies');
    same(
      [
        testimony.worker,
        testimony.token,
        testimony.outcome,
        testimony.report,
        testimony.chained,
        testimony.tick,
      ],
      ['worker-a', zombie.token, 'succeeded', '"zombie"', false, clock.now()],
      'testimony',
    );
    await succeed(store, holder, '"holder"');
    same((await viewOf(store, holder.id)).report, '"holder"', 'result');
  },

  'a zombie that repeats itself is recorded once, and never more than the bound': async (opened) => {
    const { store } = opened;
    const [zombie] = await zombieAndHolder(opened);
    for (let time = 0; time < 3; time += 1) {
      refused(await settleOne(store, zombie, 'permanent', { report: 'same' }), 'stale_token', 'a repetition');
    }
    same((await viewOf(store, zombie.id)).testimony.length, 1, 'testimonies');
    for (let time = 0; time < limits.testimonyPerJobMax + 5; time += 1) {
      refused(
        await settleOne(store, zombie, 'permanent', { report: `no ${time}` }),
        'stale_token',
        'another',
      );
    }
    same((await viewOf(store, zombie.id)).testimony.length, limits.testimonyPerJobMax, 'testimonies at most');
  },

  'a token that was never given out leaves no testimony': async ({ store }) => {
    const job = await runningJob(store);
    const forged = { ...job, token: job.token + 100 };
    refused(await settleOne(store, forged, 'succeeded'), 'stale_token', 'a forged token');
    same((await viewOf(store, job.id)).testimony, [], 'testimony');
  },

  'a late report about a job that waits again decides nothing and is recorded': async ({ store, clock }) => {
    const job = await runningJob(store);
    clock.advance(LEASE_MS);
    stands(await late(store, job, 'succeeded', '1'), STATE.PENDING);
    same((await claimOne(store)).job.attempt, 2, 'attempt of the next run');
    same(only((await viewOf(store, job.id)).testimony, 'testimonies').chained, false, 'chained');
  },

  'a late success decides an UNCERTAIN job, and says that it was late': async (opened) => {
    const { store } = opened;
    const job = await uncertainJob(opened);
    const decided = stands(await late(store, job, 'succeeded', '{"receipt":7}'), STATE.SUCCEEDED);
    same(decided.cause, 'late_report', 'cause');
    const view = await viewOf(store, job.id);
    same([view.report, view.needsYou, view.contradictions], ['{"receipt":7}', null, 0], 'what is shown');
    same(only(view.testimony, 'testimonies').chained, true, 'testimony in the chain');
    const facts = ['claimed', 'begun', 'lapsed', 'testimony', 'reconciled'];
    same(await factTypes(store, job.id), facts, 'facts');
  },

  'a late permanent failure decides an UNCERTAIN job too': async (opened) => {
    const job = await uncertainJob(opened);
    const decided = stands(await late(opened.store, job, 'permanent', 'no'), STATE.PERMANENT_FAILURE);
    same(decided.cause, 'late_report', 'cause');
  },

  'the very settlement that finds its lease over is the late report that decides': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store, { idempotent: false, reconciles: true });
    clock.advance(LEASE_MS);
    stands(await late(store, job, 'succeeded', '1'), STATE.SUCCEEDED);
    same(await internalJobs(store, job.id), [], 'reconcile jobs');
  },

  'a late report that is not definite stays testimony': async (opened) => {
    const { store, clock } = opened;
    const job = await uncertainJob(opened);
    const until = clock.now() + 10;
    for (const outcome of ['retryable', 'uncertain', 'snoozed', 'interrupted', 'refused'] as const) {
      refused(await settleOne(store, job, outcome, { until, report: outcome }), 'lease_lost', outcome);
    }
    const view = await viewOf(store, job.id);
    stands(view.job, STATE.UNCERTAIN);
    same([view.testimony.length, view.job.testimonies], [5, 5], 'testimonies');
  },

  'where late reports do not count, a late success is testimony for who decides': async (opened) => {
    const { store } = opened;
    const job = await uncertainJob(opened, { acceptLateReports: false });
    stands(await late(store, job, 'succeeded', '1'), STATE.UNCERTAIN);
    const repeated = await late(store, job, 'succeeded', '1');
    same(repeated.testimonies, 1, 'testimonies after a repetition');
    const testimony = only((await viewOf(store, job.id)).testimony, 'testimonies');
    same([testimony.outcome, testimony.chained], ['succeeded', true], 'outcome and chained');
    const decision = { id: job.id, token: job.token, decision: 'succeeded', by: OPERATOR } as const;
    stands(accepted(await store.reconcile(decision), 'the decision'), STATE.SUCCEEDED);
    same((await viewOf(store, job.id)).contradictions, 0, 'contradictions');
  },

  'a decision against what the holder said is a contradiction, counted and shown': async (opened) => {
    const { store } = opened;
    const job = await uncertainJob(opened, { acceptLateReports: false });
    await late(store, job, 'succeeded', '1');
    const decision = { id: job.id, token: job.token, decision: 'failed', by: OPERATOR } as const;
    accepted(await store.reconcile(decision), 'the decision');
    same((await viewOf(store, job.id)).contradictions, 1, 'contradictions');
    same((await store.counts()).contradictions, 1, 'contradictions of the store');
  },

  'a late report against what was decided meanwhile is a contradiction that needs somebody': async (
    opened,
  ) => {
    const { store } = opened;
    const job = await uncertainJob(opened);
    const decision = { id: job.id, token: job.token, decision: 'succeeded', by: OPERATOR } as const;
    const decided = accepted(await store.reconcile(decision), 'the decision');
    const verdict = await settleOne(store, job, 'permanent', { report: 'declined' });
    refused(verdict, 'lease_lost', 'the late report');
    const view = await viewOf(store, job.id);
    same(view.job, decided, 'the decided job');
    same([view.contradictions, view.needsYou], [1, 'contradiction'], 'what is shown');
    same(only(view.testimony, 'testimonies').chained, false, 'chained');
  },

  'a holder of an earlier attempt does not decide a later one that is UNCERTAIN': async (opened) => {
    const { store, clock } = opened;
    const zombie = await runningJob(store, { maxAttempts: 3 });
    clock.advance(LEASE_MS);
    const strict = [{ kind: 'transfer', revision: 1, idempotent: false }];
    await claimOne(store, { definitions: strict });
    clock.advance(LEASE_MS);
    await store.lapse(500);
    refused(await settleOne(store, zombie, 'succeeded'), 'stale_token', 'the report of the first attempt');
    const view = await viewOf(store, zombie.id);
    stands(view.job, STATE.UNCERTAIN);
    same(only(view.testimony, 'testimonies').chained, false, 'chained');
  },

  'a dead job keeps what its last holder said, and shows that its outcome is unknown': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store, { maxAttempts: 1 });
    clock.advance(LEASE_MS);
    stands(await late(store, job, 'succeeded', '1'), STATE.DEAD_LETTERED);
    const view = await viewOf(store, job.id);
    same([view.job.outcomeUnknown, view.needsYou], [true, 'outcome_unknown'], 'what is shown');
    same(only(view.testimony, 'testimonies').report, '1', 'testimony');
  },

  'testimony survives a restart': async (opened) => {
    const [zombie, holder] = await zombieAndHolder(opened);
    refused(
      await settleOne(opened.store, zombie, 'succeeded'),
      'stale_token',
      'the settlement of the zombie',
    );
    const before = await viewOf(opened.store, holder.id);
    const { store } = await opened.reopen();
    same(await viewOf(store, holder.id), before, 'the job');
    check(before.testimony.length === 1, 'the testimony is there');
  },
});
