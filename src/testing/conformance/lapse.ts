/** Lapse: what the passing of time does to each state, to the tick, and to nothing else. */
import { type Job, type JobRequest, limits, STATE, type State } from '../../core/index.ts';
import type { Store } from '../../store/store.ts';
import {
  claimOne,
  enqueueOne,
  factsFor,
  failedJob,
  holderOf,
  jobOf,
  LEASE_MS,
  leaseOne,
  OPERATOR,
  runningJob,
  uncertainJob,
  viewOf,
} from './build.ts';
import { accepted, check, present, refused, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf, type OpenedStore } from './harness.ts';

interface Expected {
  readonly to: State;
  readonly cause: Job['cause'];
  readonly outcomeUnknown?: boolean;
}

/** One millisecond before `at` nothing may change; at `at` the job must stand where expected, with the fact of it. */
async function lapsesAt(opened: OpenedStore, job: Job, at: number, expected: Expected): Promise<Job> {
  const { store, clock } = opened;
  clock.set(at - 1);
  same(await store.lapse(500), { ids: [], more: false }, 'lapsed a millisecond before');
  same(await jobOf(store, job.id), job, 'the job a millisecond before');
  clock.set(at);
  same(await store.lapse(500), { ids: [job.id], more: false }, 'lapsed');
  const after = stands(await jobOf(store, job.id), expected.to);
  same(
    [after.cause, after.outcomeUnknown],
    [expected.cause, expected.outcomeUnknown ?? false],
    'cause and doubt',
  );
  same([after.lease, after.tick, after.attempt], [null, at, job.attempt], 'lease, tick and attempt');
  const fact = present((await factsFor(store, job.id)).at(-1), 'fact');
  check(fact.type === 'lapsed', `the last fact is the lapse, and was ${fact.type}`);
  same([fact.at, fact.tick, fact.cause], [at, at, expected.cause], 'what time was passed, when, and why');
  same(await store.lapse(500), { ids: [], more: false }, 'lapsed a second time');
  return after;
}

async function leasedJob(store: Store, request: Partial<JobRequest> = {}): Promise<Job> {
  await enqueueOne(store, request);
  return leaseOne(store);
}

const DEADLINE_PASSED = { to: STATE.DEAD_LETTERED, cause: 'deadline_passed' } as const;

export const lapseCases: readonly ConformanceCase[] = casesOf('lapse', {
  'PENDING is buried at its deadline': async (opened) => {
    const deadline = opened.clock.now() + 100;
    await lapsesAt(opened, await enqueueOne(opened.store, { deadline }), deadline, DEADLINE_PASSED);
  },

  'SCHEDULED is buried at its deadline': async (opened) => {
    const { store, clock } = opened;
    const deadline = clock.now() + 100;
    await lapsesAt(opened, await enqueueOne(store, { deadline, delayMs: 99 }), deadline, DEADLINE_PASSED);
  },

  'LEASED is buried at its deadline, and no outcome is in doubt': async (opened) => {
    const deadline = opened.clock.now() + 100;
    await lapsesAt(opened, await leasedJob(opened.store, { deadline }), deadline, DEADLINE_PASSED);
  },

  'RUNNING and idempotent is buried at its deadline, its outcome unknown': async (opened) => {
    const deadline = opened.clock.now() + 100;
    const expected = { ...DEADLINE_PASSED, outcomeUnknown: true };
    const job = await lapsesAt(opened, await runningJob(opened.store, { deadline }), deadline, expected);
    same((await viewOf(opened.store, job.id)).needsYou, 'outcome_unknown', 'needs you');
  },

  'RUNNING and not idempotent is UNCERTAIN at its deadline': async (opened) => {
    const deadline = opened.clock.now() + 100;
    const job = await runningJob(opened.store, { deadline, idempotent: false });
    await lapsesAt(opened, job, deadline, { to: STATE.UNCERTAIN, cause: 'deadline_passed' });
  },

  'LEASED waits again at the end of its lease, whatever its contract': async (opened) => {
    const job = await leasedJob(opened.store, { idempotent: false, maxAttempts: 1 });
    const end = present(job.lease, 'lease').expiresAt;
    await lapsesAt(opened, job, end, { to: STATE.PENDING, cause: 'lease_expired' });
  },

  'RUNNING and idempotent with attempts left waits again at the end of its lease': async (opened) => {
    const job = await runningJob(opened.store, { maxAttempts: 2 });
    const end = present(job.lease, 'lease').expiresAt;
    await lapsesAt(opened, job, end, { to: STATE.PENDING, cause: 'lease_expired' });
  },

  'RUNNING and idempotent on its last attempt is buried, its outcome unknown': async (opened) => {
    const job = await runningJob(opened.store, { maxAttempts: 1 });
    const end = present(job.lease, 'lease').expiresAt;
    const expected = { to: STATE.DEAD_LETTERED, cause: 'lease_expired', outcomeUnknown: true } as const;
    await lapsesAt(opened, job, end, expected);
  },

  'RUNNING and not idempotent is UNCERTAIN at the end of its lease, attempts left or not': async (opened) => {
    for (const maxAttempts of [1, 5]) {
      const job = await runningJob(opened.store, { idempotent: false, maxAttempts });
      const end = present(job.lease, 'lease').expiresAt;
      await lapsesAt(opened, job, end, { to: STATE.UNCERTAIN, cause: 'lease_expired' });
    }
  },

  'the deadline wins over a lease that ends at the same tick or before': async (opened) => {
    const { store, clock } = opened;
    const same1 = await runningJob(store, { deadline: clock.now() + LEASE_MS });
    await lapsesAt(opened, same1, clock.now() + LEASE_MS, { ...DEADLINE_PASSED, outcomeUnknown: true });
    const job = await leasedJob(store, { deadline: clock.now() + LEASE_MS + 1 });
    clock.advance(LEASE_MS + 1);
    await store.lapse(500);
    const fact = present((await factsFor(store, job.id)).at(-1), 'fact');
    check(fact.type === 'lapsed', `the last fact is the lapse, and was ${fact.type}`);
    same([fact.by, fact.to], ['deadline', STATE.DEAD_LETTERED], 'by and state');
  },

  'UNCERTAIN never lapses: it waits for a decision, past any deadline': async (opened) => {
    const { store, clock } = opened;
    const job = await uncertainJob(opened, { deadline: clock.now() + 5_000 });
    clock.advance(limits.keepKeysForMsDefault);
    same(await store.lapse(500), { ids: [], more: false }, 'lapsed');
    same(await jobOf(store, job.id), job, 'the uncertain job');
  },

  'what has ended never lapses': async ({ store, clock }) => {
    const job = await failedJob(store, { deadline: clock.now() + 5_000 });
    clock.advance(10_000);
    same(await store.lapse(500), { ids: [], more: false }, 'lapsed');
    same(await jobOf(store, job.id), job, 'the failed job');
  },

  'a requested cancellation sticks: a lost idempotent attempt is CANCELLED, and not run again': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store);
    accepted(await store.cancel({ id: job.id, by: OPERATOR }), 'the cancellation');
    clock.advance(LEASE_MS);
    await store.lapse(500);
    stands(await jobOf(store, job.id), STATE.CANCELLED);
  },

  'a requested cancellation does not turn an unknown outcome into a known one': async ({ store, clock }) => {
    const job = await runningJob(store, { idempotent: false });
    accepted(await store.cancel({ id: job.id, by: OPERATOR }), 'the cancellation');
    clock.advance(LEASE_MS);
    await store.lapse(500);
    same(stands(await jobOf(store, job.id), STATE.UNCERTAIN).cancelRequested, true, 'cancel requested');
  },

  'pages are no longer than asked for, and calling again reaches all': async ({ store, clock }) => {
    const ids: number[] = [];
    for (let job = 0; job < 5; job += 1) ids.push((await runningJob(store, { idempotent: false })).id);
    clock.advance(LEASE_MS);
    const lapsed: number[] = [];
    for (const more of [true, true, false]) {
      const page = await store.lapse(2);
      check(page.ids.length <= 2, 'a page is no longer than asked for');
      same(page.more, more, 'more');
      lapsed.push(...page.ids);
    }
    same(
      lapsed.sort((a, b) => a - b),
      ids,
      'ids lapsed',
    );
  },

  'renewed leases hide no expired one behind them': async ({ store, clock }) => {
    const held: Job[] = [];
    for (let job = 0; job < 10; job += 1) held.push(await runningJob(store));
    const lost = await runningJob(store);
    clock.advance(LEASE_MS - 1);
    await store.extend(held.map((job) => ({ ...holderOf(job), extendMs: LEASE_MS })));
    clock.advance(1);
    same(await store.lapse(1), { ids: [lost.id], more: false }, 'lapsed');
  },

  'nothing depends on who held a job, nor on that worker being known': async ({ store, clock }) => {
    const first = await runningJob(store, {}, { worker: 'gone-for-good' });
    clock.advance(LEASE_MS);
    same((await store.lapse(500)).ids, [first.id], 'lapsed');
    same((await claimOne(store, { worker: 'gone-for-good' })).job.delivery, 2, 'delivery');
  },

  'reads lapse nothing': async ({ store, clock }) => {
    const job = await runningJob(store, { idempotent: false, orderingKey: 'alice' });
    clock.advance(LEASE_MS * 10);
    same(await jobOf(store, job.id), job, 'the job as read');
    await store.find({});
    await store.counts();
    await store.queues();
    await store.lanes(10);
    await store.workers();
    await store.explain(job.id, []);
    same(present(await store.evidence(job.id), 'evidence').job, job, 'the job in its evidence');
  },

  'a lapse that was due is kept although the command that came was refused': async ({ store, clock }) => {
    const job = await runningJob(store, { idempotent: false });
    clock.advance(LEASE_MS);
    refused(await store.promote({ id: job.id, by: OPERATOR }), 'wrong_state', 'promoting');
    stands(await jobOf(store, job.id), STATE.UNCERTAIN);
  },

  'a lapse outlives a restart, and time that passed meanwhile counts': async (opened) => {
    const job = await runningJob(opened.store, { idempotent: false });
    const { store } = await opened.reopen();
    opened.clock.advance(LEASE_MS);
    same((await store.lapse(500)).ids, [job.id], 'lapsed');
    stands(await jobOf(store, job.id), STATE.UNCERTAIN);
  },

  'a page of none, or beyond its bound, throws': async ({ store }) => {
    for (const limit of [0, -1, 1.5, limits.lapsePageMax + 1]) {
      await rejects(() => store.lapse(limit), 'invalid_input', `a page of ${limit}`);
    }
  },
});
