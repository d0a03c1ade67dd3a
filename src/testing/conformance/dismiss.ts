/** Dismiss: somebody looked; the job needs nobody any more, and nothing about it has changed. */
import { STATE } from '../../core/index.ts';
import {
  deadJob,
  enqueueOne,
  failedJob,
  jobOf,
  LEASE_MS,
  OPERATOR,
  runningJob,
  uncertainJob,
  viewOf,
} from './build.ts';
import { accepted, duplicate, present, refused, same, stands } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

export const dismissCases: readonly ConformanceCase[] = casesOf('dismiss', {
  'a job that was looked at needs nobody, with who and why on record, also after a restart': async (
    opened,
  ) => {
    const { clock } = opened;
    const job = await runningJob(opened.store, { maxAttempts: 1 });
    clock.advance(LEASE_MS);
    await opened.store.lapse(500);
    same((await viewOf(opened.store, job.id)).needsYou, 'outcome_unknown', 'needs you before');
    const by = { actor: 'olga', reason: 'checked with the bank' };
    const dismissed = accepted(await opened.store.dismiss({ id: job.id, by }), 'dismissing');
    stands(dismissed, STATE.DEAD_LETTERED);
    const { store } = await opened.reopen();
    const view = await viewOf(store, job.id);
    same([view.needsYou, view.dismissed], [null, { ...by, tick: clock.now() }], 'what is shown');
    same(view.job, dismissed, 'the job');
    same((await store.find({ needsYou: true })).jobs, [], 'what needs somebody');
    same((await store.counts()).needsYou, 0, 'count of it');
    const act = present((await store.acts()).at(-1), 'act');
    same([act.act, act.actor, act.reason], ['dismiss', by.actor, by.reason], 'act');
  },

  'dismissing is no transition: version and history stay': async ({ store }) => {
    const job = await failedJob(store);
    const before = present(await store.evidence(job.id), 'evidence').chain;
    same(accepted(await store.dismiss({ id: job.id, by: OPERATOR }), 'dismissing'), job, 'the job');
    same(present(await store.evidence(job.id), 'evidence').chain, before, 'chain');
  },

  'dismissing twice is a duplicate, and the first act stands': async ({ store, clock }) => {
    const { id } = await deadJob(store);
    accepted(await store.dismiss({ id, by: { actor: 'olga' } }), 'dismissing');
    const before = await viewOf(store, id);
    clock.advance(5);
    duplicate(await store.dismiss({ id, by: { actor: 'piet' } }), 'dismissing again');
    same(await viewOf(store, id), before, 'the job');
  },

  'what has not ended cannot be dismissed, least of all what is UNCERTAIN': async (opened) => {
    const { store } = opened;
    const uncertain = await uncertainJob(opened);
    refused(
      await store.dismiss({ id: uncertain.id, by: OPERATOR }),
      'wrong_state',
      'dismissing what is UNCERTAIN',
    );
    const waiting = await enqueueOne(store);
    refused(await store.dismiss({ id: waiting.id, by: OPERATOR }), 'wrong_state', 'dismissing what waits');
    refused(await store.dismiss({ id: 4_711, by: OPERATOR }), 'unknown_job', 'dismissing an unknown job');
    same(await jobOf(store, uncertain.id), uncertain, 'the uncertain job');
  },

  'who dismisses what they saw is refused when it is another version': async ({ store }) => {
    const job = await failedJob(store);
    const version = job.version - 1;
    refused(await store.dismiss({ id: job.id, by: OPERATOR, version }), 'version_mismatch', 'an old version');
    accepted(await store.dismiss({ id: job.id, by: OPERATOR, version: job.version }), 'the version seen');
  },
});
