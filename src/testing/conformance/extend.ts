/** Extend: a holder that is alive keeps its job, one that came too late does not, and no renewal leaves a trace. */

import type { Refusal } from '../../core/index.ts';
import { limits, STATE } from '../../core/index.ts';
import type { ExtendVerdict, Holder, Store } from '../../store/store.ts';
import { NO_NUMBERS } from './begin.ts';
import {
  claimIds,
  claimOne,
  enqueueOne,
  holderOf,
  jobOf,
  LEASE_MS,
  leaseOne,
  OPERATOR,
  runningJob,
  succeed,
  viewOf,
} from './build.ts';
import { accepted, check, only, present, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

async function extendOne(store: Store, holder: Holder, extendMs = LEASE_MS): Promise<ExtendVerdict> {
  return only(await store.extend([{ id: holder.id, token: holder.token, extendMs }]), 'verdicts');
}

function extended(verdict: ExtendVerdict): Extract<ExtendVerdict, { status: 'extended' }> {
  const why = verdict.status === 'lost' ? verdict.refused : '';
  check(verdict.status === 'extended', `the lease must be extended, and was ${verdict.status} ${why}`);
  return verdict;
}

function lost(verdict: ExtendVerdict, refusal: Refusal): void {
  check(verdict.status === 'lost', `the lease must be lost, and was ${verdict.status}`);
  same(verdict.refused, refusal, 'why it is lost');
}

export const extendCases: readonly ConformanceCase[] = casesOf('extend', {
  'a lease ends so long from now, whatever its old end was': async ({ store, clock }) => {
    const job = await runningJob(store);
    clock.advance(300);
    const longer = extended(await extendOne(store, job, 5_000));
    same(longer.expiresAt, clock.now() + 5_000, 'the later end');
    const shorter = extended(await extendOne(store, job, 10));
    same(shorter.expiresAt, clock.now() + 10, 'the earlier end');
    const lease = present((await jobOf(store, job.id)).lease, 'lease');
    same([lease.expiresAt, lease.lengthMs], [clock.now() + 10, 10], 'the stored end and length');
    same(shorter.job, await jobOf(store, job.id), 'the answer and what is stored');
  },

  'a leased job that was not begun can be kept as well': async ({ store, clock }) => {
    await enqueueOne(store);
    const job = await leaseOne(store);
    clock.advance(LEASE_MS - 1);
    extended(await extendOne(store, job));
    clock.advance(LEASE_MS - 1);
    same(await claimIds(store), [], 'ids claimed by another');
    stands(await jobOf(store, job.id), STATE.LEASED);
  },

  'a renewal is no fact: neither version nor history move': async ({ store, clock }) => {
    const job = await runningJob(store);
    const before = present(await store.evidence(job.id), 'evidence');
    clock.advance(10);
    extended(await extendOne(store, job));
    const after = present(await store.evidence(job.id), 'evidence');
    same(after.chain, before.chain, 'chain');
    same([after.job.version, after.job.tick], [before.job.version, before.job.tick], 'version and tick');
  },

  'a lease that ends at this very tick is lost, and the lapse is kept': async ({ store, clock }) => {
    const job = await runningJob(store, { idempotent: false });
    clock.advance(LEASE_MS);
    lost(await extendOne(store, job), 'lease_lost');
    stands(await jobOf(store, job.id), STATE.UNCERTAIN);
    lost(await extendOne(store, job), 'lease_lost');
  },

  'no lease reaches past the deadline: at the deadline it is lost': async ({ store, clock }) => {
    const job = await runningJob(store, { deadline: clock.now() + 500 });
    extended(await extendOne(store, job, 60_000));
    clock.advance(500);
    lost(await extendOne(store, job), 'lease_lost');
    same(stands(await jobOf(store, job.id), STATE.DEAD_LETTERED).cause, 'deadline_passed', 'cause');
  },

  'an old token extends nothing, least of all the lease of the new holder': async ({ store, clock }) => {
    const zombie = await runningJob(store);
    clock.advance(LEASE_MS);
    const { job } = await claimOne(store, { worker: 'worker-b' });
    lost(await extendOne(store, zombie, 60_000), 'stale_token');
    same((await jobOf(store, job.id)).lease, job.lease, 'the lease of the holder');
  },

  'a settled attempt has no lease to extend, and an unknown job neither': async ({ store }) => {
    const job = await runningJob(store);
    await succeed(store, job);
    lost(await extendOne(store, job), 'already_settled');
    lost(await extendOne(store, { id: 4_711, token: 1 }), 'unknown_job');
  },

  'one lost lease does not touch the others': async ({ store, clock }) => {
    const gone = await runningJob(store);
    clock.advance(LEASE_MS / 2);
    const kept = await runningJob(store);
    clock.advance(LEASE_MS / 2);
    const extensions = [gone, kept].map((job) => ({ ...holderOf(job), extendMs: LEASE_MS }));
    const [first, second] = await store.extend(extensions);
    lost(present(first, 'verdict'), 'lease_lost');
    same(extended(present(second, 'verdict')).job.id, kept.id, 'id of the one that was extended');
  },

  'a holder learns from its renewal that it should stop': async ({ store }) => {
    const job = await runningJob(store);
    same(extended(await extendOne(store, job)).job.cancelRequested, false, 'cancel requested before');
    accepted(await store.cancel({ id: job.id, by: OPERATOR }), 'the cancellation');
    same(extended(await extendOne(store, job)).job.cancelRequested, true, 'cancel requested after');
  },

  'a paused queue takes no running job from its holder': async ({ store }) => {
    const job = await runningJob(store);
    await store.pause('default', OPERATOR);
    extended(await extendOne(store, job));
    await succeed(store, job);
  },

  'an extended lease outlives a restart': async (opened) => {
    const job = await runningJob(opened.store);
    extended(await extendOne(opened.store, job, 9_000));
    const { store } = await opened.reopen();
    opened.clock.advance(8_999);
    same(await claimIds(store), [], 'ids claimed before its end');
    opened.clock.advance(1);
    same(await claimIds(store), [job.id], 'ids claimed at its end');
  },

  'a length outside its bounds throws, and the lease stays as it was': async ({ store }) => {
    const job = await runningJob(store);
    const before = await viewOf(store, job.id);
    for (const extendMs of [0, -1, 0.5, Number.NaN, limits.leaseMsMax + 1]) {
      await rejects(() => extendOne(store, job, extendMs), 'invalid_input', `an extension by ${extendMs}`);
    }
    for (const token of NO_NUMBERS) {
      await rejects(() => extendOne(store, { id: job.id, token }), 'invalid_input', `token ${token}`);
    }
    same(await viewOf(store, job.id), before, 'the job');
    extended(await extendOne(store, job, limits.leaseMsMax));
  },
});
