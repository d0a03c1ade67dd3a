/** Cancel: what has not begun ends at once, what may have touched the world is asked to end, and the wish sticks. */
import { limits, STATE } from '../../core/index.ts';
import type { Store, Verdict } from '../../store/store.ts';
import {
  claimIds,
  claimOne,
  enqueueOne,
  factsFor,
  failedJob,
  jobOf,
  leaseOne,
  OPERATOR,
  retryableUncertainJob,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
} from './build.ts';
import { accepted, check, duplicate, present, refused, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

async function cancel(store: Store, id: number, version: number | null = null): Promise<Verdict> {
  return store.cancel({ id, by: OPERATOR, version });
}

export const cancelCases: readonly ConformanceCase[] = casesOf('cancel', {
  'PENDING, SCHEDULED and LEASED are cancelled at once and never start': async ({ store, clock }) => {
    await enqueueOne(store);
    const leased = await leaseOne(store);
    const pending = await enqueueOne(store);
    const scheduled = await enqueueOne(store, { delayMs: 10 });
    for (const { id } of [leased, pending, scheduled]) {
      const job = stands(accepted(await cancel(store, id), 'the cancellation'), STATE.CANCELLED);
      same([job.cause, job.endedAt, job.lease], ['cancelled', clock.now(), null], 'cause, end and lease');
    }
    clock.advance(10);
    same(await claimIds(store, { max: 500 }), [], 'ids claimed');
  },

  'RUNNING is asked and goes on until its handler says how it ended': async ({ store }) => {
    const job = await runningJob(store);
    const asked = stands(accepted(await cancel(store, job.id), 'the cancellation'), STATE.RUNNING);
    same([asked.cancelRequested, asked.lease], [true, job.lease], 'cancel requested and lease');
    same(asked.version, job.version + 1, 'version');
  },

  'a success stands although a cancellation was requested': async ({ store }) => {
    const job = await runningJob(store);
    accepted(await cancel(store, job.id), 'the cancellation');
    stands(await succeed(store, job), STATE.SUCCEEDED);
  },

  'whatever would wait again is CANCELLED instead': async ({ store, clock }) => {
    for (const outcome of ['retryable', 'snoozed', 'interrupted', 'uncertain', 'refused'] as const) {
      const job = await runningJob(store);
      accepted(await cancel(store, job.id), 'the cancellation');
      const options = { until: clock.now() + 10, byUpgrade: true };
      const ended = accepted(await settleOne(store, job, outcome, options), outcome);
      stands(ended, STATE.CANCELLED, `after ${outcome}`);
    }
  },

  'a permanent failure stays one': async ({ store }) => {
    const job = await runningJob(store);
    accepted(await cancel(store, job.id), 'the cancellation');
    stands(accepted(await settleOne(store, job, 'permanent'), 'the failure'), STATE.PERMANENT_FAILURE);
  },

  'an unknown outcome stays unknown: a cancellation decides nothing': async (opened) => {
    const { store } = opened;
    const reported = await runningJob(store, { idempotent: false });
    accepted(await cancel(store, reported.id), 'the cancellation');
    stands(accepted(await settleOne(store, reported, 'uncertain'), 'the settlement'), STATE.UNCERTAIN);
    const lost = await uncertainJob(opened);
    const asked = stands(accepted(await cancel(store, lost.id), 'the cancellation'), STATE.UNCERTAIN);
    same(asked.cancelRequested, true, 'cancel requested');
  },

  'a decided retry of an UNCERTAIN job is CANCELLED where that was requested': async (opened) => {
    const { store } = opened;
    const job = await retryableUncertainJob(opened);
    accepted(await cancel(store, job.id), 'the cancellation');
    const decision = { id: job.id, token: job.token, decision: 'retry', by: OPERATOR } as const;
    stands(accepted(await store.reconcile(decision), 'the decision'), STATE.CANCELLED);
  },

  'asking twice is a duplicate and records nothing': async ({ store }) => {
    const job = await runningJob(store);
    const first = accepted(await cancel(store, job.id), 'the cancellation');
    same(duplicate(await cancel(store, job.id), 'the second'), first, 'the job');
    same(await jobOf(store, job.id), first, 'the stored job');
  },

  'what has ended is not cancelled': async ({ store }) => {
    const failed = await failedJob(store);
    refused(await cancel(store, failed.id), 'terminal', 'cancelling a failed job');
    const waiting = await enqueueOne(store);
    accepted(await cancel(store, waiting.id), 'the cancellation');
    refused(await cancel(store, waiting.id), 'terminal', 'cancelling a cancelled job');
    same(await jobOf(store, failed.id), failed, 'the failed job');
  },

  'a job nobody stored is unknown': async ({ store }) => {
    refused(await cancel(store, 4_711), 'unknown_job', 'cancelling');
  },

  'who acts on what they saw is refused when the job has moved since': async ({ store }) => {
    const seen = await enqueueOne(store);
    await claimOne(store);
    refused(await cancel(store, seen.id, seen.version), 'version_mismatch', 'cancelling an old version');
    same((await jobOf(store, seen.id)).cancelRequested, false, 'cancel requested');
    accepted(await cancel(store, seen.id, (await jobOf(store, seen.id)).version), 'cancelling what is there');
    await succeed(store, await jobOf(store, seen.id));
    refused(await cancel(store, seen.id, seen.version), 'version_mismatch', 'cancelling an old, ended job');
  },

  'time is looked at first: an overdue job is buried and not cancelled': async ({ store, clock }) => {
    const job = await enqueueOne(store, { deadline: clock.now() + 10 });
    clock.advance(10);
    refused(await cancel(store, job.id), 'terminal', 'cancelling at the deadline');
    stands(await jobOf(store, job.id), STATE.DEAD_LETTERED);
  },

  'who cancelled and why is part of the history': async ({ store }) => {
    const { id } = await enqueueOne(store);
    const by = { actor: 'olga', reason: 'customer called \u2014 twice' };
    accepted(await store.cancel({ id, by }), 'the cancellation');
    const fact = present((await factsFor(store, id)).at(-1), 'fact');
    check(fact.type === 'cancel' && fact.reason !== null, 'the last fact is the cancellation, with a reason');
    same(fact.actor, 'olga', 'actor');
    const evidence = present(await store.evidence(id), 'evidence');
    same(evidence.texts[fact.reason], by.reason, 'reason');
  },

  'a wish outlives a restart': async (opened) => {
    const job = await runningJob(opened.store);
    accepted(await cancel(opened.store, job.id), 'the cancellation');
    const { store } = await opened.reopen();
    stands(accepted(await settleOne(store, job, 'retryable'), 'the retry'), STATE.CANCELLED);
  },

  'who or why outside their bounds throws, and nothing is cancelled': async ({ store }) => {
    const { id } = await enqueueOne(store);
    const bad = [
      { actor: '' },
      { actor: 'a'.repeat(limits.actorBytesMax + 1) },
      { actor: 'olga', reason: '\u00e4'.repeat(limits.reasonBytesMax / 2 + 1) },
      { actor: 'olga', reason: '\ud800' },
    ];
    for (const by of bad) {
      const what = `cancelling by ${by.actor.slice(0, 9)}`;
      await rejects(() => store.cancel({ id, by }), 'invalid_input', what);
    }
    await rejects(() => store.cancel({ id, by: OPERATOR, version: -1 }), 'invalid_input', 'a bad version');
    await rejects(() => store.cancel({ id: 0, by: OPERATOR }), 'invalid_input', 'a bad id');
    stands(await jobOf(store, id), STATE.PENDING);
    const longest = { actor: 'a'.repeat(limits.actorBytesMax), reason: 'r'.repeat(limits.reasonBytesMax) };
    accepted(await store.cancel({ id, by: longest }), 'the longest actor and reason');
  },
});
