/** Claim: whoever asks, at any moment, a delivery is given once, to one worker, and only where nothing forbids it. */
import { limits, pickForToken, STATE } from '../../core/index.ts';
import type { ClaimRequest } from '../../store/store.ts';
import {
  claimIds,
  claimOne,
  claimRequest,
  enqueueMany,
  enqueueOne,
  factTypes,
  failedJob,
  holderOf,
  internalJobs,
  jobOf,
  KIND,
  LEASE_MS,
  leaseOne,
  OPERATOR,
  runningJob,
  settlementOf,
  settleOne,
  succeed,
  uncertainJob,
  unique,
  WORKER,
} from './build.ts';
import { accepted, check, only, present, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

const BAD_CLAIMS: readonly Partial<ClaimRequest>[] = [
  { max: 0 },
  { max: limits.claimBatchMax + 1 },
  { max: 1.5 },
  { leaseMs: 0 },
  { leaseMs: limits.leaseMsMax + 1 },
  { worker: '' },
  { worker: 'w'.repeat(limits.workerBytesMax + 1) },
  { requestId: '' },
  { queues: [''] },
  { definitions: [{ kind: KIND, revision: 0, idempotent: true }] },
  { definitions: [{ kind: '', revision: 1, idempotent: true }] },
  {
    definitions: [
      { kind: KIND, revision: 1, idempotent: true },
      { kind: KIND, revision: 2, idempotent: true },
    ],
  },
];

export const claimCases: readonly ConformanceCase[] = casesOf('claim', {
  'an empty store gives nothing': async ({ store }) => {
    same(await claimIds(store, { max: 500 }), [], 'ids claimed');
  },

  'a claim without begin takes custody and counts no attempt': async ({ store, clock }) => {
    const { id } = await enqueueOne(store, { payload: { b: 1, a: 2 } });
    const { job, payload } = await claimOne(store, { begin: false, leaseMs: 250 });
    stands(job, STATE.LEASED);
    same([job.id, job.delivery, job.attempt, job.runs], [id, 1, 0, 0], 'id, delivery, attempt and runs');
    const lease = { token: job.token, worker: WORKER, expiresAt: clock.now() + 250, lengthMs: 250 };
    same(job.lease, lease, 'lease');
    same(payload, '{"a":2,"b":1}', 'payload');
    same(job, await jobOf(store, id), 'the answer and what is stored');
  },

  'a claim with begin is both in one commit, and both facts are recorded': async ({ store }) => {
    const { id } = await enqueueOne(store);
    const { job } = await claimOne(store);
    stands(job, STATE.RUNNING);
    same([job.delivery, job.attempt, job.runs, job.version], [1, 1, 1, 2], 'counters');
    same(await factTypes(store, id), ['claimed', 'begun'], 'facts');
  },

  'no more jobs are given than asked for, and fewer when there are fewer': async ({ store }) => {
    await enqueueMany(store, [{}, {}, {}]);
    same((await claimIds(store, { max: 2 })).length, 2, 'jobs of the first claim');
    same((await claimIds(store, { max: 2 })).length, 1, 'jobs of the second');
    same(await claimIds(store, { max: 2 }), [], 'jobs of the third');
  },

  'what is leased, running, uncertain or ended is given to nobody': async (opened) => {
    const { store } = opened;
    await uncertainJob(opened);
    await failedJob(store);
    await succeed(store, await runningJob(store));
    await runningJob(store);
    await enqueueOne(store);
    await leaseOne(store);
    same(await claimIds(store, { max: 500 }), [], 'ids claimed');
  },

  'a job is due at exactly its start and not a millisecond before': async ({ store, clock }) => {
    const { id } = await enqueueOne(store, { delayMs: 100 });
    clock.advance(99);
    same(await claimIds(store), [], 'ids claimed before');
    clock.advance(1);
    same(await claimIds(store), [id], 'ids claimed at the start');
  },

  'kinds and newer revisions the claimer does not know are left alone, and hide nothing behind them': async ({
    store,
  }) => {
    const requests = [{ kind: 'mail' }, { revision: 3 }, { revision: 2 }, {}];
    const [mail, newer, same2, older] = await enqueueMany(store, requests);
    const definitions = [{ kind: KIND, revision: 2, idempotent: true }];
    const ids = await claimIds(store, { max: 500, definitions });
    same(ids, [present(same2, 'job').id, present(older, 'job').id], 'ids claimed');
    stands(await jobOf(store, present(mail, 'job').id), STATE.PENDING);
    stands(await jobOf(store, present(newer, 'job').id), STATE.PENDING);
    same(await claimIds(store, { max: 500, definitions: [] }), [], 'ids for one who can run nothing');
  },

  'a claim for some queues takes nothing from others': async ({ store }) => {
    const [, slow, fast] = await enqueueMany(store, [{}, { queue: 'slow' }, { queue: 'fast' }]);
    const ids = await claimIds(store, { max: 500, queues: ['slow', 'fast', 'none'] });
    same(ids, [present(slow, 'job').id, present(fast, 'job').id], 'ids claimed');
    same(await claimIds(store, { max: 500, queues: [] }), [], 'ids for no queue at all');
  },

  'a claimer that says not idempotent makes a job so for good': async ({ store, clock }) => {
    const { id } = await enqueueOne(store);
    const strict = [{ kind: KIND, revision: 1, idempotent: false }];
    const { job } = await claimOne(store, { definitions: strict });
    same([job.idempotent, job.submission.idempotent], [false, true], 'contract now and as submitted');
    accepted(await settleOne(store, job, 'interrupted'), 'the interruption');
    const again = (await claimOne(store)).job;
    same(again.idempotent, false, 'contract for a claimer that would call it idempotent');
    clock.advance(LEASE_MS);
    await store.lapse(500);
    stands(await jobOf(store, id), STATE.UNCERTAIN);
  },

  'no claimer makes a job idempotent that was not': async ({ store }) => {
    await enqueueOne(store, { idempotent: false });
    same((await claimOne(store)).job.idempotent, false, 'contract');
  },

  'the contract of a kind does not make its internal jobs unsafe to ask again': async (opened) => {
    const { store, clock } = opened;
    const parent = await uncertainJob(opened, { reconciles: true, reconcileAfterMs: 0 });
    clock.advance(1);
    const strict = [{ kind: KIND, revision: 1, idempotent: false }];
    const { job } = await claimOne(store, { definitions: strict });
    same(job.submission.internal?.parentId, parent.id, 'parent of the internal job');
    same(job.idempotent, true, 'contract');
  },

  'higher priority goes first, then admission order': async ({ store }) => {
    const priorities = [0, 5, -1000, 1000, 5, 0];
    const jobs = await enqueueMany(
      store,
      priorities.map((priority) => ({ priority })),
    );
    const order = [3, 1, 4, 0, 5, 2].map((index) => present(jobs[index], 'job').id);
    same(await claimIds(store, { max: 500 }), order, 'order of claims');
  },

  'a token divisible by sixteen takes the oldest due job, so that nothing starves': async ({ store }) => {
    const old = await enqueueMany(store, [{ priority: -5 }, { priority: -5 }, { priority: -5 }]);
    const urgent = await enqueueMany(
      store,
      Array.from({ length: 60 }, () => ({ priority: 5 })),
    );
    let waiting = [...old, ...urgent];
    let oldestFirst = 0;
    for (let claims = 0; claims < 48; claims += 1) {
      const { job } = await claimOne(store);
      const expected = present(pickForToken(waiting, job.token), 'a job to claim');
      same(job.id, expected.id, `job for token ${job.token}`);
      if (job.submission.priority < 0) oldestFirst += 1;
      waiting = waiting.filter(({ id }) => id !== job.id);
    }
    same(oldestFirst, 3, 'old jobs that came before urgent ones');
  },

  'tokens rise over the whole store and none is ever given twice, also after a restart': async (opened) => {
    const tokens: number[] = [];
    let { store } = opened;
    await enqueueMany(store, [{}, {}, {}, {}]);
    for (let round = 0; round < 4; round += 1) {
      for (const { job } of await store.claim(claimRequest({ max: 3, begin: round % 2 === 0 }))) {
        tokens.push(job.token);
      }
      opened.clock.advance(LEASE_MS);
      if (round === 1) store = (await opened.reopen()).store;
    }
    check(tokens.length >= 10, `enough tokens to tell: ${tokens.length}`);
    same(
      tokens,
      [...new Set(tokens)].sort((a, b) => a - b),
      'tokens in the order given',
    );
  },

  'racing claimers never get the same delivery': async ({ store }) => {
    await enqueueMany(
      store,
      Array.from({ length: 10 }, () => ({})),
    );
    const claims = Array.from({ length: 16 }, (_, index) =>
      store.claim(claimRequest({ worker: `worker-${index}`, max: 2 })),
    );
    const jobs = (await Promise.all(claims)).flat().map(({ job }) => job);
    same(jobs.length, 10, 'deliveries');
    same(new Set(jobs.map(({ id }) => id)).size, 10, 'different jobs');
    same(new Set(jobs.map(({ token }) => token)).size, 10, 'different tokens');
  },

  'a claim asked again under its request id answers the same deliveries and takes no others': async ({
    store,
  }) => {
    await enqueueMany(store, [{}, {}, {}]);
    const request = claimRequest({ max: 2, begin: false });
    const first = await store.claim(request);
    same(await store.claim(request), first, 'the second answer');
    const holders = first.map(({ job }) => holderOf(job));
    for (const verdict of await store.begin(holders)) accepted(verdict, 'begin');
    const third = await store.claim(request);
    same(
      third.map(({ job }) => holderOf(job)),
      holders,
      'the third answer, after begin',
    );
    stands(present(third[0], 'delivery').job, STATE.RUNNING);
  },

  'deliveries that are over are not answered again': async ({ store, clock }) => {
    await enqueueMany(store, [{}, {}]);
    const request = claimRequest({ max: 2 });
    const [settled, kept] = (await store.claim(request)).map(({ job }) => job);
    await succeed(store, present(settled, 'job'));
    same(
      (await store.claim(request)).map(({ job }) => holderOf(job)),
      [holderOf(present(kept, 'job'))],
      'left',
    );
    clock.advance(LEASE_MS);
    for (const { job } of await store.claim(request)) {
      check(job.token > present(kept, 'job').token, `token ${job.token} of an expired delivery came back`);
    }
  },

  'the answer to a repeated request survives a restart': async (opened) => {
    await enqueueMany(opened.store, [{}, {}]);
    const request = claimRequest({ max: 1 });
    const first = await opened.store.claim(request);
    const { store } = await opened.reopen();
    same(await store.claim(request), first, 'the answer after the restart');
  },

  'what is overdue in reach is lapsed in the same commit, and an expired lease is work at once': async ({
    store,
    clock,
  }) => {
    const lost = await runningJob(store);
    clock.advance(LEASE_MS);
    const { job } = await claimOne(store, { worker: 'worker-b' });
    same([job.id, job.delivery, job.attempt], [lost.id, 2, 2], 'id, delivery and attempt');
    check(job.token > lost.token, 'the new token is above the lost one');
    same(await factTypes(store, job.id), ['claimed', 'begun', 'lapsed', 'claimed', 'begun'], 'facts');
  },

  'a claim that gets nothing still persists what had lapsed': async ({ store, clock }) => {
    const { id } = await enqueueOne(store, { deadline: clock.now() + 10 });
    clock.advance(10);
    same(await claimIds(store), [], 'ids claimed at the deadline');
    const job = stands(await jobOf(store, id), STATE.DEAD_LETTERED);
    same([job.cause, job.endedAt], ['deadline_passed', clock.now()], 'cause and end');
  },

  'a lease outlives a restart, and ends at the same tick': async (opened) => {
    const { clock } = opened;
    const held = await runningJob(opened.store);
    const { store } = await opened.reopen();
    clock.advance(LEASE_MS - 1);
    same(await claimIds(store), [], 'ids claimed while the lease is current');
    clock.advance(1);
    same((await claimOne(store)).job.id, held.id, 'id claimed at its end');
  },

  'internal jobs go before every other, whatever its priority': async (opened) => {
    const { store, clock } = opened;
    await enqueueOne(store, { priority: limits.priorityMax, delayMs: 1_001 });
    const parent = await uncertainJob(opened, { reconciles: true, reconcileAfterMs: 0 });
    clock.advance(1);
    const { job } = await claimOne(store);
    same(job.id, only(await internalJobs(store, parent.id), 'internal jobs').id, 'id claimed first');
  },

  'a request outside its bounds throws and gives nothing': async ({ store }) => {
    const { id } = await enqueueOne(store);
    for (const bad of BAD_CLAIMS) {
      const what = `a claim with ${JSON.stringify(bad)}`;
      await rejects(() => store.claim(claimRequest(bad)), 'invalid_input', what);
    }
    same(stands(await jobOf(store, id), STATE.PENDING).version, 0, 'facts recorded');
  },

  'custody given up before the handler ran leaves the job as it was, but for its token': async ({
    store,
  }) => {
    await enqueueOne(store, { requestId: unique('request') });
    const leased = await leaseOne(store);
    const { settled } = await store.settle([settlementOf(leased, 'interrupted', { neverCalled: true })]);
    const job = stands(accepted(only(settled, 'verdicts'), 'the interruption'), STATE.PENDING);
    same([job.attempt, job.runs, job.delivery], [0, 0, 1], 'attempt, runs and delivery');
    const next = await leaseOne(store);
    check(next.token > leased.token, 'the next token is a new one');
  },

  'nothing is given from a paused queue, and everything again once it is resumed': async ({ store }) => {
    const [paused, open] = await enqueueMany(store, [{ priority: 9 }, { queue: 'open' }]);
    await store.pause('default', OPERATOR);
    same(await claimIds(store, { max: 500 }), [present(open, 'job').id], 'ids while paused');
    await store.resume('default', OPERATOR);
    same(await claimIds(store, { max: 500 }), [present(paused, 'job').id], 'ids once resumed');
  },
});
