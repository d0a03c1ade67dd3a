/** Redrive: once, by somebody, as a new job; the old one stays ended and an effect that took place is not repeated. */
import { type Job, limits, STATE } from '../../core/index.ts';
import type { RedriveRequest, Store } from '../../store/store.ts';
import {
  addCents,
  balanceOf,
  claimIds,
  claimOne,
  deadJob,
  enqueueOne,
  failedJob,
  internalJobs,
  jobOf,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  unique,
  viewOf,
} from './build.ts';
import { accepted, check, only, present, refused, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

async function redriven(store: Store, id: number, options: Partial<RedriveRequest> = {}): Promise<Job> {
  const verdict = await store.redrive({ id, by: OPERATOR, ...options });
  check(verdict.ok, `redriving must be accepted, and was refused: ${verdict.ok ? '' : verdict.refused}`);
  same(verdict.job.id, id, 'id of the old job');
  return present(verdict.redriven, 'the new job');
}

export const redriveCases: readonly ConformanceCase[] = casesOf('redrive', {
  'what died, failed or was cancelled becomes a new job; the old one stays as it ended': async ({
    store,
  }) => {
    const waiting = await enqueueOne(store);
    const cancelled = accepted(await store.cancel({ id: waiting.id, by: OPERATOR }), 'the cancellation');
    for (const old of [cancelled, await deadJob(store), await failedJob(store)]) {
      const made = stands(await redriven(store, old.id), STATE.PENDING);
      check(made.id > old.id, `the new job ${made.id} comes after job ${old.id}`);
      same(await jobOf(store, old.id), old, 'the old job');
      same(made, await jobOf(store, made.id), 'the answer and what is stored');
    }
  },

  'payload, policy and lineage are kept; key, request id and deadline are not': async ({ store, clock }) => {
    const old = await deadJob(store, {
      payload: { cents: 9 },
      priority: 4,
      orderingKey: 'alice',
      idempotencyKey: unique('key'),
      requestId: unique('request'),
      deadline: clock.now() + 5_000,
    });
    const made = await redriven(store, old.id);
    const { idempotencyKey, requestId, deadline, admittedAt, startAt, inherited, ...kept } = made.submission;
    same([idempotencyKey, requestId, deadline], [null, null, null], 'key, request id and deadline');
    same(
      [admittedAt, startAt, inherited?.fromId],
      [clock.now(), clock.now(), old.id],
      'admission, start, origin',
    );
    const before: Readonly<Record<string, unknown>> = { ...old.submission };
    for (const [field, value] of Object.entries(kept)) same(value, before[field], field);
    same((await viewOf(store, made.id)).payload, '{"cents":9}', 'payload');
  },

  'the key still answers with the old job': async ({ store }) => {
    const idempotencyKey = unique('key');
    const old = await deadJob(store, { idempotencyKey });
    await redriven(store, old.id);
    same((await store.getByKey(idempotencyKey))?.id, old.id, 'id under the key');
  },

  'a new deadline may be given; one that is not ahead is refused': async ({ store, clock }) => {
    const old = await deadJob(store);
    const deadline = clock.now();
    const late = await store.redrive({ id: old.id, by: OPERATOR, deadline });
    refused(late, 'deadline_passed', 'a deadline of now');
    same(
      (await redriven(store, old.id, { deadline: deadline + 1 })).submission.deadline,
      deadline + 1,
      'deadline',
    );
  },

  'the new job stands at the tail of its lane': async ({ store }) => {
    const old = await deadJob(store, { orderingKey: 'alice' });
    const next = await enqueueOne(store, { orderingKey: 'alice' });
    const made = await redriven(store, old.id);
    same(await claimIds(store, { max: 500 }), [next.id], 'ids claimed first');
    await succeed(store, await jobOf(store, next.id));
    same(await claimIds(store, { max: 500 }), [made.id], 'ids claimed next');
  },

  'an effect that took place is not repeated by the new job': async (opened) => {
    const { store } = opened;
    const old = await runningJob(store, { requiresEffect: 'charge' });
    same(await addCents(opened, old, 'charge', 7), false, 'done before');
    accepted(await settleOne(store, old, 'permanent'), 'the failure');
    const made = await redriven(store, old.id);
    same(made.requiredEffectCommitted, true, 'effect committed');
    const { job } = await claimOne(store);
    same(await addCents(opened, job, 'charge', 7), true, 'done before by the old job');
    await succeed(store, job);
    same(await balanceOf(opened), 7, 'balance');
  },

  'a step the old job left open is open in the new one': async ({ store }) => {
    const old = await runningJob(store, { maxAttempts: 1 });
    const step = { descriptor: null, idempotent: false };
    await store.transact({ id: old.id, token: old.token }, (tx) => tx.beginStep('wire', step));
    accepted(await settleOne(store, old, 'retryable'), 'the last attempt');
    const made = await redriven(store, old.id);
    same(made.openSteps, [{ key: 'wire', idempotent: false }], 'open steps');
    const { job } = await claimOne(store);
    const again = await store.transact({ id: job.id, token: job.token }, (tx) => tx.beginStep('wire', step));
    refused(again, 'step_open', 'the step in the new job');
  },

  'after a compensation that went well the lineage is new: the effect was undone and may come again': async (
    opened,
  ) => {
    const { store } = opened;
    const old = await runningJob(store, { compensates: true });
    await addCents(opened, old, 'charge', 7);
    accepted(await settleOne(store, old, 'permanent'), 'the failure');
    await succeed(store, (await claimOne(store)).job);
    const made = await redriven(store, old.id);
    check(made.submission.lineage !== old.submission.lineage, 'the lineage is a new one');
    same(made.requiredEffectCommitted, false, 'effect committed');
    same(await addCents(opened, (await claimOne(store)).job, 'charge', 7), false, 'done before');
    same(await balanceOf(opened), 14, 'balance');
  },

  'while a compensation is under way nothing is redriven, and after a failed one the lineage stays': async ({
    store,
  }) => {
    const old = await failedJob(store, { compensates: true });
    refused(await store.redrive({ id: old.id, by: OPERATOR }), 'wrong_state', 'redriving too early');
    const undo = only(await internalJobs(store, old.id), 'compensations');
    const { job } = await claimOne(store);
    same(job.id, undo.id, 'id claimed');
    refused(await store.redrive({ id: old.id, by: OPERATOR }), 'wrong_state', 'redriving while it runs');
    accepted(await settleOne(store, job, 'permanent'), 'the failing compensation');
    same((await redriven(store, old.id)).submission.lineage, old.submission.lineage, 'lineage');
  },

  'a job is redriven once: rivals and the late are told so': async ({ store }) => {
    const old = await deadJob(store);
    const request = { id: old.id, by: OPERATOR };
    const verdicts = await Promise.all([
      store.redrive(request),
      store.redrive(request),
      store.redrive(request),
    ]);
    same(verdicts.filter(({ ok }) => ok).length, 1, 'accepted');
    refused(await store.redrive(request), 'already_redriven', 'redriving again');
    same((await store.find({})).jobs.length, 2, 'jobs stored');
  },

  'the new job is redriven in its turn when it ends badly too': async ({ store }) => {
    const first = await deadJob(store);
    await redriven(store, first.id);
    const { job } = await claimOne(store);
    accepted(await settleOne(store, job, 'permanent'), 'the failure');
    const third = await redriven(store, job.id);
    same(third.submission.lineage, first.submission.lineage, 'lineage');
    same(third.submission.inherited?.fromId, job.id, 'origin');
  },

  'what is unresolved, succeeded or internal is not redriven, and an unknown job neither': async ({
    store,
  }) => {
    const by = OPERATOR;
    const done = await succeed(store, await runningJob(store));
    refused(await store.redrive({ id: done.id, by }), 'wrong_state', 'redriving a success');
    const running = await runningJob(store);
    refused(await store.redrive({ id: running.id, by }), 'wrong_state', 'redriving a running job');
    await succeed(store, running);
    const failed = await failedJob(store, { compensates: true });
    const { job } = await claimOne(store);
    accepted(await settleOne(store, job, 'permanent'), 'the failing compensation');
    same(job.submission.internal?.parentId, failed.id, 'parent');
    refused(await store.redrive({ id: job.id, by }), 'wrong_state', 'redriving an internal job');
    refused(await store.redrive({ id: 4_711, by }), 'unknown_job', 'redriving an unknown job');
  },

  'a queue at its bound takes no redriven job, and the old one can be redriven later': async ({ store }) => {
    const old = await deadJob(store);
    const holds = await enqueueOne(store);
    await store.configure('default', { maxUnresolved: 1 }, OPERATOR);
    refused(await store.redrive({ id: old.id, by: OPERATOR }), 'capacity_exceeded', 'redriving at the bound');
    same((await viewOf(store, old.id)).redrivenTo, null, 'link');
    accepted(await store.cancel({ id: holds.id, by: OPERATOR }), 'the cancellation');
    await redriven(store, old.id);
  },

  'who redrives what they saw is refused when it is another version': async ({ store }) => {
    const old = await deadJob(store);
    const version = old.version - 1;
    refused(await store.redrive({ id: old.id, by: OPERATOR, version }), 'version_mismatch', 'an old version');
    await redriven(store, old.id, { version: old.version });
  },

  'both jobs are linked and the act is recorded, with who and why, also after a restart': async (opened) => {
    const old = await deadJob(opened.store);
    const made = await redriven(opened.store, old.id, { by: { actor: 'olga', reason: 'bank is back' } });
    const { store } = await opened.reopen();
    same((await viewOf(store, old.id)).redrivenTo, made.id, 'link to the new job');
    same((await jobOf(store, made.id)).submission.inherited?.fromId, old.id, 'link back');
    const act = present((await store.acts()).at(-1), 'act');
    same(
      [act.act, act.actor, act.reason, act.tick],
      ['redrive', 'olga', 'bank is back', opened.clock.now()],
      'act',
    );
    check(act.detail.includes(`${old.id}`) && act.detail.includes(`${made.id}`), 'the act names both jobs');
  },

  'a dry run answers and changes nothing': async ({ store }) => {
    const old = await deadJob(store);
    const before = [await viewOf(store, old.id), await store.acts(), await store.counts()];
    const verdict = await store.redrive({ id: old.id, by: OPERATOR, dryRun: true });
    check(verdict.ok, 'a dry run of what is possible is accepted');
    same(verdict.redriven, null, 'new job of a dry run');
    same([await viewOf(store, old.id), await store.acts(), await store.counts()], before, 'what is stored');
    const running = await enqueueOne(store);
    const refusal = await store.redrive({ id: running.id, by: OPERATOR, dryRun: true });
    refused(refusal, 'wrong_state', 'a dry run of what is not possible');
    same((await redriven(store, old.id)).submission.inherited?.fromId, old.id, 'origin of the real one');
  },

  'a contract that a worker made stricter stays so in the new job': async ({ store }) => {
    const definitions = [{ kind: 'transfer', revision: 1, idempotent: false }];
    const old = await runningJob(store, { maxAttempts: 1 }, { definitions });
    accepted(await settleOne(store, old, 'retryable'), 'the last attempt');
    same((await redriven(store, old.id)).idempotent, false, 'contract');
  },

  'an overdue job is buried first, and then redriven': async ({ store, clock }) => {
    const { id } = await enqueueOne(store, { deadline: clock.now() + 10 });
    clock.advance(10);
    await redriven(store, id);
    same(stands(await jobOf(store, id), STATE.DEAD_LETTERED).cause, 'deadline_passed', 'cause');
  },

  'a deadline that is no tick throws, and nothing is redriven': async ({ store }) => {
    const old = await deadJob(store);
    for (const deadline of [-1, 0.5, limits.tickMax + 1]) {
      const call = (): Promise<unknown> => store.redrive({ id: old.id, by: OPERATOR, deadline });
      await rejects(call, 'invalid_input', `a deadline of ${deadline}`);
    }
    same((await store.find({})).jobs.length, 1, 'jobs stored');
  },
});
