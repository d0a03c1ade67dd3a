/** Evidence: a job's whole history can be read, verified and replayed away from the store, texts and testimony included. */
import { limits, STATE } from '../../core/index.ts';
import { closedAfter, verifyJob } from '../../evidence/index.ts';
import {
  claimOne,
  enqueueOne,
  factsFor,
  holderOf,
  LEASE_MS,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
} from './build.ts';
import { accepted, check, present, refused, same } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

export const evidenceCases: readonly ConformanceCase[] = casesOf('evidence', {
  'a job that was only admitted has a chain without entries, and it verifies': async ({ store }) => {
    const { id } = await enqueueOne(store);
    const evidence = present(await store.evidence(id), 'evidence');
    same([evidence.chain.entries, evidence.chain.open], [[], []], 'entries');
    same(verifyJob(evidence).ok, true, 'verified');
  },

  'claim and begin are part of the history before anything follows them': async ({ store }) => {
    const job = await runningJob(store);
    const { chain } = present(await store.evidence(job.id), 'evidence');
    same(closedAfter(chain).entries.length, 2, 'entries with the open delivery');
    const [claimed, begun] = await factsFor(store, job.id);
    check(claimed?.type === 'claimed' && begun?.type === 'begun', 'a claim and its begin');
    same([claimed.worker, claimed.token, claimed.delivery], ['worker-a', job.token, 1], 'claim');
    same(
      [claimed.expiresAt, begun.expiresAt],
      [job.lease?.expiresAt, job.lease?.expiresAt],
      'lease in force',
    );
  },

  'an entry made under a lease that was extended carries its end then': async ({ store, clock }) => {
    const job = await runningJob(store);
    await store.extend([{ ...holderOf(job), extendMs: 9_000 }]);
    clock.advance(5_000);
    await succeed(store, job);
    const settled = present((await factsFor(store, job.id)).at(-1), 'fact');
    same([settled.type, settled.tick], ['settled', clock.now()], 'settlement');
    same(settled.expiresAt, clock.now() + 4_000, 'end of the lease in force');
  },

  'a change anywhere in a history is found': async (opened) => {
    const { store } = opened;
    const job = await uncertainJob(opened);
    refused(await settleOne(store, job, 'succeeded', { report: '7' }), 'lease_lost', 'the late report');
    const evidence = present(await store.evidence(job.id), 'evidence');
    same(verifyJob(evidence).ok, true, 'verified as stored');
    const { chain } = evidence;
    const forged = [
      { ...evidence, payload: '{"cents":8}' },
      { ...evidence, job: { ...evidence.job, state: STATE.PERMANENT_FAILURE } },
      { ...evidence, job: { ...evidence.job, attempt: 0 } },
      { ...evidence, chain: { ...chain, entries: chain.entries.slice(0, -1) } },
      { ...evidence, chain: { ...chain, entries: chain.entries.slice(1) } },
      { ...evidence, chain: { ...chain, entries: [...chain.entries].reverse() } },
      { ...evidence, chain: { ...chain, root: '0'.repeat(64) } },
    ];
    for (const [index, one] of forged.entries())
      same(verifyJob(one).ok, false, `verified as forged, ${index}`);
  },

  'the digest in each entry finds its text: results, reasons and late reports': async (opened) => {
    const { store } = opened;
    const job = await uncertainJob(opened, { acceptLateReports: false });
    refused(await settleOne(store, job, 'succeeded', { report: '"late"' }), 'lease_lost', 'the late report');
    const by = { actor: 'olga', reason: 'seen on the statement' };
    accepted(await store.reconcile({ ...holderOf(job), decision: 'succeeded', by }), 'the decision');
    const evidence = present(await store.evidence(job.id), 'evidence');
    const digests = (await factsFor(store, job.id)).flatMap((fact) => {
      if (fact.type === 'testimony') return [fact.digest];
      return fact.type === 'reconciled' && fact.reason !== null ? [fact.reason] : [];
    });
    same(
      digests.map((digest) => evidence.texts[digest]),
      ['"late"', by.reason],
      'texts',
    );
    same(
      evidence.testimony.map(({ report }) => report),
      ['"late"'],
      'testimony',
    );
  },

  'a long life keeps its whole history': async ({ store, clock }) => {
    const job = await runningJob(store, { maxAttempts: 1 });
    let facts = 2;
    for (let turn = 1; facts * 40 < limits.ledgerInlineMax * 2; turn += 1) {
      const held = turn === 1 ? job : (await claimOne(store)).job;
      const until = clock.now() + 1;
      accepted(await settleOne(store, held, 'snoozed', { until, report: `turn ${turn}` }), 'the snooze');
      clock.set(until);
      facts += 3;
    }
    await succeed(store, (await claimOne(store)).job);
    const evidence = present(await store.evidence(job.id), 'evidence');
    const { ok, entries } = verifyJob(evidence);
    same([ok, entries], [true, evidence.job.version], 'verified, and all entries are there');
  },

  'a history reads the same after a restart, to the byte': async (opened) => {
    const job = await runningJob(opened.store);
    opened.clock.advance(LEASE_MS);
    await claimOne(opened.store);
    accepted(await opened.store.cancel({ id: job.id, by: OPERATOR }), 'the cancellation');
    const before = present(await opened.store.evidence(job.id), 'evidence');
    const { store } = await opened.reopen();
    same(await store.evidence(job.id), before, 'evidence');
  },

  'the same life gives the same chain, but for lineage': async (opened) => {
    const roots: string[] = [];
    for (let life = 0; life < 2; life += 1) {
      const { store } = await opened.fresh();
      const job = await succeed(store, await runningJob(store));
      roots.push(present(await store.evidence(job.id), 'evidence').chain.root);
    }
    check(roots[0] !== roots[1], 'two jobs of different lineage share no root');
  },
});
