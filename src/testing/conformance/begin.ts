/** Begin: the last gate before a handler is called; who is refused here must not call it. */
import { limits, STATE } from '../../core/index.ts';
import type { Holder, Store, Verdict } from '../../store/store.ts';
import {
  claimOne,
  enqueueMany,
  enqueueOne,
  factTypes,
  holderOf,
  jobOf,
  LEASE_MS,
  leaseOne,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
} from './build.ts';
import { accepted, only, present, refused, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

async function beginOne(store: Store, holder: Holder): Promise<Verdict> {
  return only(await store.begin([holder]), 'verdicts');
}

async function leased(store: Store): Promise<Holder & { readonly id: number }> {
  await enqueueOne(store);
  return holderOf(await leaseOne(store));
}

/** Numbers that no store gives out. */
export const NO_NUMBERS: readonly number[] = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53];

export const beginCases: readonly ConformanceCase[] = casesOf('begin', {
  'a leased job runs, and the attempt counts from its begin': async ({ store }) => {
    const holder = await leased(store);
    const job = stands(accepted(await beginOne(store, holder), 'begin'), STATE.RUNNING);
    same([job.attempt, job.runs, job.delivery], [1, 1, 1], 'attempt, runs and delivery');
    same(job, await jobOf(store, job.id), 'the answer and what is stored');
    same(await factTypes(store, job.id), ['claimed', 'begun'], 'facts');
  },

  'the lease ends where the claim said: begin does not prolong it': async ({ store, clock }) => {
    await enqueueOne(store);
    const claimed = await leaseOne(store);
    clock.advance(LEASE_MS - 1);
    const job = accepted(await beginOne(store, holderOf(claimed)), 'begin');
    same(job.lease, claimed.lease, 'lease');
  },

  'a lease that ends at this very tick begins nothing, and the lapse is kept': async ({ store, clock }) => {
    const holder = await leased(store);
    clock.advance(LEASE_MS);
    refused(await beginOne(store, holder), 'lease_lost', 'begin at the end of the lease');
    const job = stands(await jobOf(store, holder.id), STATE.PENDING);
    same([job.attempt, job.runs, job.cause], [0, 0, 'lease_expired'], 'attempt, runs and cause');
  },

  'no attempt begins at its deadline, however long the lease': async ({ store, clock }) => {
    const { id } = await enqueueOne(store, { deadline: clock.now() + 10 });
    const holder = holderOf(await leaseOne(store));
    clock.advance(10);
    refused(await beginOne(store, holder), 'lease_lost', 'begin at the deadline');
    const job = stands(await jobOf(store, id), STATE.DEAD_LETTERED);
    same([job.cause, job.outcomeUnknown], ['deadline_passed', false], 'cause and unknown outcome');
  },

  'a job nobody stored is unknown': async ({ store }) => {
    refused(await beginOne(store, { id: 4_711, token: 1 }), 'unknown_job', 'begin');
  },

  'a token that is not the last one begins nothing': async ({ store, clock }) => {
    const old = await leased(store);
    clock.advance(LEASE_MS);
    const current = holderOf(await leaseOne(store));
    refused(await beginOne(store, old), 'stale_token', 'begin with the old token');
    refused(await beginOne(store, { ...current, token: current.token + 1 }), 'stale_token', 'a future token');
    stands(await jobOf(store, old.id), STATE.LEASED);
    accepted(await beginOne(store, current), 'begin with the current token');
  },

  'a token of one job begins no other': async ({ store }) => {
    await enqueueMany(store, [{}, {}]);
    const first = await leaseOne(store);
    const second = await leaseOne(store);
    const swapped = { id: first.id, token: second.token };
    refused(await beginOne(store, swapped), 'stale_token', 'begin with the token of another job');
    stands(await jobOf(store, first.id), STATE.LEASED);
  },

  'a job that runs is not begun a second time': async ({ store }) => {
    const job = await runningJob(store);
    refused(await beginOne(store, holderOf(job)), 'wrong_state', 'the second begin');
    same((await jobOf(store, job.id)).attempt, 1, 'attempts');
  },

  'a settled attempt is not begun again': async ({ store }) => {
    const job = await runningJob(store);
    await succeed(store, job);
    refused(await beginOne(store, holderOf(job)), 'already_settled', 'begin after success');
    await enqueueOne(store);
    const given = await leaseOne(store);
    accepted(await settleOne(store, given, 'interrupted'), 'the interruption');
    refused(await beginOne(store, holderOf(given)), 'already_settled', 'begin after giving back');
    stands(await jobOf(store, given.id), STATE.PENDING);
  },

  'a lost attempt is not begun again': async (opened) => {
    const job = await uncertainJob(opened);
    refused(await beginOne(opened.store, holderOf(job)), 'lease_lost', 'begin of an uncertain attempt');
    stands(await jobOf(opened.store, job.id), STATE.UNCERTAIN);
  },

  'a job cancelled between claim and begin is not begun': async ({ store }) => {
    const holder = await leased(store);
    accepted(await store.cancel({ id: holder.id, by: OPERATOR }), 'the cancellation');
    refused(await beginOne(store, holder), 'lease_lost', 'begin');
    same((await jobOf(store, holder.id)).runs, 0, 'runs');
  },

  'a paused queue begins nothing, leased jobs included; the lease stays and serves after a resume': async ({
    store,
  }) => {
    const holder = await leased(store);
    await store.pause('default', OPERATOR);
    refused(await beginOne(store, holder), 'queue_paused', 'begin while paused');
    stands(await jobOf(store, holder.id), STATE.LEASED);
    await store.resume('default', OPERATOR);
    accepted(await beginOne(store, holder), 'begin once resumed');
  },

  'an internal job begins while its queue is paused': async (opened) => {
    const { store, clock } = opened;
    await uncertainJob(opened, { reconciles: true, reconcileAfterMs: 0 });
    await store.pause('default', OPERATOR);
    clock.advance(1);
    const { job } = await claimOne(store, { begin: false });
    accepted(await beginOne(store, holderOf(job)), 'begin');
  },

  'one loser does not touch the others, and verdicts keep the order asked': async ({ store, clock }) => {
    const lost = await leased(store);
    clock.advance(LEASE_MS / 2);
    const [first, second] = [await leased(store), await leased(store)];
    clock.advance(LEASE_MS / 2);
    const unknown = { id: 4_711, token: 1 };
    const verdicts = await store.begin([second, lost, unknown, first]);
    same(
      verdicts.map(({ ok }) => ok),
      [true, false, false, true],
      'verdicts',
    );
    same(
      verdicts.map(({ job }) => job?.id ?? null),
      [second.id, lost.id, null, first.id],
      'ids',
    );
    refused(present(verdicts[1], 'verdict'), 'lease_lost', 'the lost one');
  },

  'numbers that no store gives out, and too many of them, throw before anything begins': async ({
    store,
  }) => {
    const holder = await leased(store);
    for (const number of NO_NUMBERS) {
      const bad = [
        { ...holder, token: number },
        { ...holder, id: number },
      ];
      for (const one of bad) {
        await rejects(() => store.begin([holder, one]), 'invalid_input', `begin with ${JSON.stringify(one)}`);
      }
    }
    const many = Array.from({ length: limits.holdersBatchMax + 1 }, (_, index) => ({
      id: index + 1,
      token: 1,
    }));
    await rejects(() => store.begin(many), 'invalid_input', 'too many holders');
    stands(await jobOf(store, holder.id), STATE.LEASED);
  },

  'an empty batch begins nothing': async ({ store }) => {
    same(await store.begin([]), [], 'verdicts');
  },
});
