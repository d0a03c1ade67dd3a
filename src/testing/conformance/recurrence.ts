/** Recurrence: one job per series, one run per slot, no burst after a standstill, and no effect carried into the next. */
import { type Job, limits, STATE } from '../../core/index.ts';
import {
  addCents,
  balanceOf,
  claimIds,
  claimOne,
  enqueueOne,
  holderOf,
  jobOf,
  LEASE_MS,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
  viewOf,
} from './build.ts';
import { accepted, duplicate, present, refused, same, stands } from './check.ts';
import { type ConformanceCase, casesOf, type OpenedStore } from './harness.ts';

const HOURLY = { intervalMs: 10_000, maxOccurrences: 3, maxCatchUp: 100 } as const;

/** The next occurrence of a series, begun at the tick it is due. */
async function nextRun({ store, clock }: OpenedStore, job: Job): Promise<Job> {
  clock.set(job.startAt);
  return stands((await claimOne(store)).job, STATE.RUNNING);
}

export const recurrenceCases: readonly ConformanceCase[] = casesOf('recurrence', {
  'each success leads to the next slot, and the last one ends the series': async (opened) => {
    const { store, clock } = opened;
    const start = clock.now();
    let job = await runningJob(store, { recurrence: HOURLY });
    for (const occurrence of [1, 2]) {
      clock.advance(5);
      job = stands(await succeed(store, job), STATE.SCHEDULED);
      same([job.occurrence, job.startAt], [occurrence, start + occurrence * 10_000], 'occurrence and start');
      same([job.cause, job.endedAt], ['recurrence', null], 'cause and end');
      job = await nextRun(opened, job);
    }
    same(stands(await succeed(store, job), STATE.SUCCEEDED).cause, 'reported', 'cause');
    clock.advance(100_000);
    same(await claimIds(store), [], 'ids claimed later');
  },

  'an occurrence starts with nothing of the last one': async (opened) => {
    const { store, clock } = opened;
    let job = await runningJob(store, { recurrence: HOURLY, maxAttempts: 2, requiresEffect: 'charge' });
    job = accepted(await settleOne(store, job, 'retryable', { delayMs: 1 }), 'the retry');
    clock.set(job.startAt);
    job = (await claimOne(store)).job;
    await addCents(opened, job, 'charge', 7);
    const next = await succeed(store, job);
    same([next.attempt, next.delivery, next.runs, next.openSteps], [0, 0, 0, []], 'counters');
    same(next.requiredEffectCommitted, false, 'effect committed');
    const again = await nextRun(opened, next);
    refused(await settleOne(store, again, 'succeeded'), 'effect_not_committed', 'success without the effect');
  },

  'effect keys belong to one occurrence: the next one has its effect anew': async (opened) => {
    const { store } = opened;
    const job = await runningJob(store, { recurrence: HOURLY });
    same(await addCents(opened, job, 'charge', 7), false, 'done before in the first occurrence');
    const again = await nextRun(opened, await succeed(store, job));
    same(await addCents(opened, again, 'charge', 7), false, 'done before in the second occurrence');
    same(await addCents(opened, again, 'charge', 7), true, 'done before within the second occurrence');
    same(await balanceOf(opened), 14, 'balance');
  },

  'slots missed during a standstill are skipped: one run, not a burst': async (opened) => {
    const { store, clock } = opened;
    const start = clock.now();
    const { id } = await enqueueOne(store, { recurrence: HOURLY });
    clock.set(start + 35_000);
    const job = await succeed(store, (await claimOne(store)).job);
    same([job.id, job.startAt], [id, start + 40_000], 'next start');
    same(await claimIds(store), [], 'ids claimed at once');
  },

  'no more slots are skipped in one step than the bound says': async (opened) => {
    const { store, clock } = opened;
    const start = clock.now();
    await enqueueOne(store, { recurrence: { ...HOURLY, maxCatchUp: 1 } });
    clock.set(start + 55_000);
    const job = await succeed(store, (await claimOne(store)).job);
    same(job.startAt, start + 20_000, 'next start, still missed');
    const again = await succeed(store, (await claimOne(store)).job);
    same(again.startAt, start + 40_000, 'the one after, missed again');
  },

  'a retry has a start of its own and does not move the slots': async (opened) => {
    const { store, clock } = opened;
    const start = clock.now();
    const job = await runningJob(store, { recurrence: HOURLY });
    const retry = accepted(await settleOne(store, job, 'retryable', { delayMs: 3_000 }), 'the retry');
    same([retry.startAt, retry.slotAt], [start + 3_000, start], 'start and slot');
    const done = await succeed(store, await nextRun(opened, retry));
    same([done.startAt, done.slotAt], [start + 10_000, start + 10_000], 'next start and slot');
  },

  'any other end ends the series': async ({ store, clock }) => {
    const failed = await runningJob(store, { recurrence: HOURLY });
    stands(accepted(await settleOne(store, failed, 'permanent'), 'the failure'), STATE.PERMANENT_FAILURE);
    const dead = await runningJob(store, { recurrence: HOURLY, maxAttempts: 1 });
    stands(accepted(await settleOne(store, dead, 'retryable'), 'the last attempt'), STATE.DEAD_LETTERED);
    const waiting = await succeed(store, await runningJob(store, { recurrence: HOURLY }));
    accepted(await store.cancel({ id: waiting.id, by: OPERATOR }), 'the cancellation');
    stands(await jobOf(store, waiting.id), STATE.CANCELLED);
    clock.advance(100_000);
    same(await claimIds(store, { max: 500 }), [], 'ids claimed later');
  },

  'a requested cancellation lets the success stand and ends the series': async ({ store }) => {
    const job = await runningJob(store, { recurrence: HOURLY });
    accepted(await store.cancel({ id: job.id, by: OPERATOR }), 'the cancellation');
    stands(await succeed(store, job), STATE.SUCCEEDED);
  },

  'a next slot at or past the deadline ends the series as SUCCEEDED': async ({ store, clock }) => {
    const slot = clock.now() + 10_000;
    const ends = await runningJob(store, { recurrence: HOURLY, deadline: slot });
    stands(await succeed(store, ends), STATE.SUCCEEDED);
    const goesOn = await runningJob(store, { recurrence: HOURLY, deadline: slot + 1 });
    stands(await succeed(store, goesOn), STATE.SCHEDULED);
  },

  'every way to success advances it: a decision and a late report too': async (opened) => {
    const { store } = opened;
    const decided = await uncertainJob(opened, { recurrence: HOURLY });
    const decision = { ...holderOf(decided), decision: 'succeeded', by: OPERATOR } as const;
    const next = stands(accepted(await store.reconcile(decision), 'the decision'), STATE.SCHEDULED);
    same([next.occurrence, next.cause], [1, 'recurrence'], 'occurrence and cause');
    accepted(await store.cancel({ id: decided.id, by: OPERATOR }), 'the cancellation');
    const late = await uncertainJob(opened, { recurrence: HOURLY });
    refused(await settleOne(store, late, 'succeeded'), 'lease_lost', 'the late report');
    same(
      stands(await jobOf(store, late.id), STATE.SCHEDULED).occurrence,
      1,
      'occurrence after the late report',
    );
  },

  'a success reported twice advances the series once': async ({ store }) => {
    const job = await runningJob(store, { recurrence: HOURLY });
    const first = await succeed(store, job, '1');
    const again = duplicate(await settleOne(store, job, 'succeeded', { report: '1' }), 'the second report');
    same(again, first, 'the job');
  },

  'a series outlives a restart, slot and occurrence included': async (opened) => {
    const { clock } = opened;
    const waiting = await succeed(opened.store, await runningJob(opened.store, { recurrence: HOURLY }));
    const { store } = await opened.reopen();
    same(await jobOf(store, waiting.id), waiting, 'the job');
    clock.set(waiting.startAt);
    same((await claimOne(store)).job.occurrence, 1, 'occurrence of the next run');
  },

  'a series that is redriven goes on at the occurrence that failed, without repeating its effect': async (
    opened,
  ) => {
    const { store, clock } = opened;
    const job = await runningJob(store, { recurrence: HOURLY });
    await addCents(opened, job, 'charge', 7);
    const second = await nextRun(opened, await succeed(store, job));
    await addCents(opened, second, 'charge', 7);
    accepted(await settleOne(store, second, 'permanent'), 'the failure');
    const verdict = await store.redrive({ id: job.id, by: OPERATOR });
    const made = present(verdict.ok ? verdict.redriven : null, 'the new job');
    same(made.occurrence, 1, 'occurrence');
    const again = (await claimOne(store)).job;
    same(await addCents(opened, again, 'charge', 7), true, 'done before');
    const next = stands(await succeed(store, again), STATE.SCHEDULED);
    same([next.occurrence, next.startAt], [2, clock.now() + 10_000], 'occurrence and start of the next');
    same(await balanceOf(opened), 14, 'balance');
  },

  'a lost occurrence of a series that is not idempotent rests UNCERTAIN and starts nothing': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store, { recurrence: HOURLY, idempotent: false });
    clock.advance(LEASE_MS);
    await store.lapse(500);
    stands(await jobOf(store, job.id), STATE.UNCERTAIN);
    clock.advance(limits.keepKeysForMsDefault);
    same(await claimIds(store), [], 'ids claimed later');
    same((await viewOf(store, job.id)).needsYou, 'uncertain', 'needs you');
  },
});
