/** Bounds of a queue: what counts is every unresolved job, what does not count is what time or Custody itself put there. */
import { type JobRequest, STATE } from '../../core/index.ts';
import type { Store } from '../../store/store.ts';
import {
  enqueueOne,
  internalJobs,
  jobOf,
  jobRequest,
  LEASE_MS,
  leaseOne,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
} from './build.ts';
import { accepted, only, present, same, stands } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

const FULL = { status: 'refused', refused: 'capacity_exceeded', id: null };

async function bound(store: Store, maxUnresolved: number | null): Promise<void> {
  await store.configure('default', { maxUnresolved }, OPERATOR);
}

async function isFull(store: Store, request: Partial<JobRequest> = {}): Promise<void> {
  const before = await store.counts();
  same(only(await store.enqueue([jobRequest(request)]), 'verdicts'), FULL, 'verdict at the bound');
  same(await store.counts(), before, 'counts after a refusal');
}

export const enqueueCapacityCases: readonly ConformanceCase[] = casesOf('enqueue', {
  'a queue at its bound refuses, and stores nothing of what it refused': async ({ store }) => {
    await bound(store, 2);
    await enqueueOne(store);
    await enqueueOne(store);
    await isFull(store);
    same((await store.find({})).jobs.length, 2, 'jobs stored');
  },

  'every unresolved job counts: waiting, leased, running and uncertain ones': async (opened) => {
    const { store } = opened;
    await bound(store, 5);
    await uncertainJob(opened);
    await runningJob(store);
    await enqueueOne(store);
    await leaseOne(store);
    await enqueueOne(store, { delayMs: 50_000 });
    await enqueueOne(store);
    await isFull(store);
    same(only(await store.queues(), 'queues').unresolved, 5, 'what counts against the bound');
  },

  'a job that ended makes room': async ({ store }) => {
    await bound(store, 1);
    const job = await runningJob(store);
    await isFull(store);
    await succeed(store, job);
    await enqueueOne(store);
  },

  'internal jobs take no capacity': async (opened) => {
    const { store } = opened;
    await bound(store, 2);
    const job = await uncertainJob(opened, { reconciles: true });
    same((await internalJobs(store, job.id)).length, 1, 'reconcile jobs');
    await enqueueOne(store);
    await isFull(store);
    same(only(await store.queues(), 'queues').unresolved, 2, 'what counts against the bound');
  },

  'an overdue job takes no capacity: at the bound it is lapsed first': async ({ store, clock }) => {
    await bound(store, 1);
    const job = await enqueueOne(store, { deadline: clock.now() + 10 });
    clock.advance(9);
    await isFull(store);
    clock.advance(1);
    await enqueueOne(store);
    same(stands(await jobOf(store, job.id), STATE.DEAD_LETTERED).cause, 'deadline_passed', 'cause');
  },

  'a lost last attempt takes no capacity either, and a lost attempt with others left does': async ({
    store,
    clock,
  }) => {
    await bound(store, 1);
    const last = await runningJob(store, { maxAttempts: 1 });
    clock.advance(LEASE_MS);
    const next = await runningJob(store, { maxAttempts: 2 });
    stands(await jobOf(store, last.id), STATE.DEAD_LETTERED);
    clock.advance(LEASE_MS);
    same(only(await store.enqueue([jobRequest()]), 'verdicts'), FULL, 'verdict at the bound');
    stands(await jobOf(store, next.id), STATE.PENDING);
  },

  'a batch that would pass the bound is admitted up to it': async ({ store }) => {
    await bound(store, 2);
    const verdicts = await store.enqueue([jobRequest(), jobRequest(), jobRequest()]);
    same(
      verdicts.map(({ status }) => status),
      ['created', 'created', 'refused'],
      'verdicts',
    );
    same(verdicts[2], FULL, 'verdict on the last');
  },

  'an atomic batch that would pass the bound stores nothing': async ({ store }) => {
    await bound(store, 2);
    const batch = [jobRequest(), jobRequest(), jobRequest()];
    const verdicts = await store.enqueue(batch, { atomic: true });
    same(
      verdicts.map(({ status }) => status),
      ['withheld', 'withheld', 'refused'],
      'verdicts',
    );
    same((await store.find({})).jobs, [], 'jobs stored');
  },

  'rivals for the last place: exactly one gets it': async ({ store }) => {
    await bound(store, 1);
    const calls = Array.from({ length: 8 }, () => store.enqueue([jobRequest()]));
    const verdicts = (await Promise.all(calls)).flat();
    same(verdicts.filter(({ status }) => status === 'created').length, 1, 'jobs created');
  },

  'a bound of one queue says nothing of another': async ({ store }) => {
    await bound(store, 0);
    await isFull(store);
    await enqueueOne(store, { queue: 'other' });
  },

  'the deadline is looked at before the bound': async ({ store, clock }) => {
    await bound(store, 0);
    const verdict = only(await store.enqueue([jobRequest({ deadline: clock.now() })]), 'verdicts');
    same(verdict, { status: 'refused', refused: 'deadline_passed', id: null }, 'verdict');
  },

  'jobs beyond a lower bound stay, and room comes back one by one': async ({ store }) => {
    const first = await runningJob(store);
    const second = await runningJob(store);
    await bound(store, 1);
    await isFull(store);
    await succeed(store, first);
    await isFull(store);
    await succeed(store, second);
    await enqueueOne(store);
  },

  'a retry keeps its place: capacity is asked for at admission only': async ({ store }) => {
    await bound(store, 1);
    const job = await runningJob(store);
    const retried = accepted(await settleOne(store, job, 'retryable'), 'the retryable settlement');
    stands(retried, STATE.SCHEDULED);
    await isFull(store);
    await bound(store, null);
    await enqueueOne(store);
  },

  'a bound outlives a restart': async (opened) => {
    await bound(opened.store, 1);
    await enqueueOne(opened.store);
    const { store } = await opened.reopen();
    await isFull(store);
    same(present((await store.queues())[0], 'queue').maxUnresolved, 1, 'bound');
  },
});
