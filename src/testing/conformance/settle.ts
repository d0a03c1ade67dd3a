/** Settle: every outcome a handler may report, and where each of them leaves its job. */
import { isWellFormedText, type Job, limits, STATE } from '../../core/index.ts';
import type { Settlement, Store } from '../../store/store.ts';
import {
  claimOne,
  enqueueOne,
  factsFor,
  factTypes,
  jobOf,
  LEASE_MS,
  leaseOne,
  OPERATOR,
  runningJob,
  settlementOf,
  settleOne,
  succeed,
  unique,
  viewOf,
} from './build.ts';
import { accepted, check, only, present, refused, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

const BAD_SETTLEMENTS: readonly Readonly<Record<string, unknown>>[] = [
  { outcome: 'done' },
  { outcome: 'succeeded', report: '{' },
  { outcome: 'succeeded', report: 7 },
  { outcome: 'succeeded', report: '"\\ud800"' },
  { outcome: 'succeeded', worker: '' },
  { outcome: 'retryable', delayMs: -1 },
  { outcome: 'retryable', jitterMs: 0.5 },
  { outcome: 'snoozed', until: 2 ** 53 },
  { outcome: 'succeeded', token: 0 },
];

async function settled(
  store: Store,
  job: Job,
  outcome: Settlement['outcome'],
  options: Partial<Settlement> = {},
): Promise<Job> {
  return accepted(await settleOne(store, job, outcome, options), `the settlement as ${outcome}`);
}

/** Runs the next attempt of the one job there is, at the tick it is due. */
async function nextAttempt(store: Store, clock: { set(tick: number): void }, job: Job): Promise<Job> {
  clock.set(job.startAt);
  return (await claimOne(store)).job;
}

export const settleCases: readonly ConformanceCase[] = casesOf('settle', {
  'a success ends the job with its result': async ({ store, clock }) => {
    const job = await runningJob(store);
    clock.advance(5);
    const done = stands(await settled(store, job, 'succeeded', { report: '{"b":1,"a":2}' }), STATE.SUCCEEDED);
    same([done.cause, done.endedAt, done.lease], ['reported', clock.now(), null], 'cause, end and lease');
    same((await viewOf(store, job.id)).report, '{"a":2,"b":1}', 'result');
    same(done, await jobOf(store, job.id), 'the answer and what is stored');
    same(await factTypes(store, job.id), ['claimed', 'begun', 'settled'], 'facts');
  },

  'a success without a report has the result null': async ({ store }) => {
    const job = await runningJob(store);
    await settled(store, job, 'succeeded');
    same((await viewOf(store, job.id)).report, 'null', 'result');
  },

  'a job that was never begun cannot have succeeded, failed or snoozed': async ({ store, clock }) => {
    await enqueueOne(store);
    const job = await leaseOne(store);
    for (const outcome of [
      'succeeded',
      'retryable',
      'permanent',
      'uncertain',
      'snoozed',
      'refused',
    ] as const) {
      const verdict = await settleOne(store, job, outcome, { until: clock.now() + 10 });
      refused(verdict, 'wrong_state', `settling ${outcome} before begin`);
    }
    same(await jobOf(store, job.id), job, 'the leased job');
  },

  'a retry waits the base, then twice as long for each further attempt, and no longer than the cap': async ({
    store,
    clock,
  }) => {
    let job = await runningJob(store, { backoffBaseMs: 100, backoffMaxMs: 350, maxAttempts: 6 });
    for (const delay of [100, 200, 350, 350]) {
      job = stands(await settled(store, job, 'retryable'), STATE.SCHEDULED);
      same([job.startAt - clock.now(), job.cause], [delay, 'retry_scheduled'], `delay after ${job.attempt}`);
      job = await nextAttempt(store, clock, job);
    }
    same(job.attempt, 5, 'attempts');
  },

  'a delay the handler names replaces the backoff, and jitter is added': async ({ store, clock }) => {
    let job = await runningJob(store, { backoffBaseMs: 100 });
    job = await settled(store, job, 'retryable', { delayMs: 7, jitterMs: 3 });
    same(job.startAt - clock.now(), 10, 'named delay with jitter');
    job = await nextAttempt(store, clock, job);
    job = await settled(store, job, 'retryable', { jitterMs: 50 });
    same(job.startAt - clock.now(), 250, 'backoff of the second retry with jitter');
    job = await nextAttempt(store, clock, job);
    job = stands(await settled(store, job, 'retryable', { delayMs: 0 }), STATE.SCHEDULED);
    same((await claimOne(store)).job.id, job.id, 'id claimed at once after a delay of 0');
  },

  'the last attempt is not retried: the job is dead': async ({ store, clock }) => {
    let job = await runningJob(store, { maxAttempts: 2 });
    job = await nextAttempt(store, clock, await settled(store, job, 'retryable'));
    job = stands(await settled(store, job, 'retryable', { report: 'still down' }), STATE.DEAD_LETTERED);
    same([job.cause, job.outcomeUnknown, job.attempt], ['attempts_exhausted', false, 2], 'cause and attempt');
    same((await viewOf(store, job.id)).report, 'still down', 'reason');
  },

  'a retry that would start at its deadline is not scheduled: the job is dead': async ({ store, clock }) => {
    const deadline = clock.now() + 100;
    const dead = await runningJob(store, { deadline });
    const buried = stands(await settled(store, dead, 'retryable', { delayMs: 100 }), STATE.DEAD_LETTERED);
    same(buried.cause, 'retry_after_deadline', 'cause');
    const alive = await runningJob(store, { deadline });
    stands(await settled(store, alive, 'retryable', { delayMs: 99 }), STATE.SCHEDULED);
  },

  'a permanent failure is final at the first attempt': async ({ store }) => {
    const job = await runningJob(store);
    const failed = stands(
      await settled(store, job, 'permanent', { report: 'card closed' }),
      STATE.PERMANENT_FAILURE,
    );
    same(
      [failed.cause, (await viewOf(store, job.id)).report],
      ['reported', 'card closed'],
      'cause and reason',
    );
  },

  'an uncertain attempt that is not idempotent rests UNCERTAIN': async ({ store }) => {
    const job = await runningJob(store, { idempotent: false });
    const resting = stands(await settled(store, job, 'uncertain', { report: 'timeout' }), STATE.UNCERTAIN);
    same([resting.lease, resting.endedAt, resting.cause], [null, null, 'reported'], 'lease, end and cause');
    same((await viewOf(store, job.id)).needsYou, 'uncertain', 'needs you');
    same((await store.claim({ ...claimAgain(), max: 500 })).length, 0, 'jobs claimed');
  },

  'an uncertain attempt that is idempotent runs again, by a decision that is recorded': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store, { backoffBaseMs: 100 });
    const retried = stands(await settled(store, job, 'uncertain'), STATE.SCHEDULED);
    same([retried.startAt - clock.now(), retried.cause], [100, 'policy_retry'], 'delay and cause');
    same(await factTypes(store, job.id), ['claimed', 'begun', 'settled', 'retry_decided'], 'facts');
    same(
      (await factsFor(store, job.id)).map(({ to }) => to).slice(2),
      [STATE.UNCERTAIN, STATE.SCHEDULED],
      'states',
    );
  },

  'an uncertain attempt is not run again by policy without attempts left or time to the deadline': async ({
    store,
    clock,
  }) => {
    const last = await runningJob(store, { maxAttempts: 1 });
    stands(await settled(store, last, 'uncertain'), STATE.UNCERTAIN);
    const late = await runningJob(store, { deadline: clock.now() + 100 });
    stands(await settled(store, late, 'uncertain', { delayMs: 100 }), STATE.UNCERTAIN);
  },

  'a snooze gives its attempt back and starts at the tick it named': async ({ store, clock }) => {
    const job = await runningJob(store, { maxAttempts: 1 });
    const until = clock.now() + 70;
    const snoozed = stands(await settled(store, job, 'snoozed', { until }), STATE.SCHEDULED);
    same([snoozed.startAt, snoozed.cause], [until, 'snoozed'], 'start and cause');
    same([snoozed.attempt, snoozed.delivery, snoozed.runs], [0, 1, 1], 'attempt, delivery and runs');
    same((await nextAttempt(store, clock, snoozed)).attempt, 1, 'attempt after the snooze');
  },

  'a snooze until now, into the past or without a tick is refused, and the attempt goes on': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store);
    for (const until of [clock.now(), 0, null]) {
      refused(await settleOne(store, job, 'snoozed', { until }), 'tick_overflow', `a snooze until ${until}`);
    }
    stands(await settled(store, job, 'snoozed', { until: clock.now() + 1 }), STATE.SCHEDULED);
  },

  'a snooze to its deadline buries the job': async ({ store, clock }) => {
    const deadline = clock.now() + 100;
    const job = await runningJob(store, { deadline });
    stands(await settled(store, job, 'snoozed', { until: deadline }), STATE.DEAD_LETTERED);
    const other = await runningJob(store, { deadline });
    stands(await settled(store, other, 'snoozed', { until: deadline - 1 }), STATE.SCHEDULED);
  },

  'an interrupted attempt is given back and can start at once': async ({ store }) => {
    const job = await runningJob(store, { maxAttempts: 1, idempotent: false });
    const given = stands(await settled(store, job, 'interrupted'), STATE.PENDING);
    same([given.attempt, given.runs, given.cause], [0, 1, 'interrupted'], 'attempt, runs and cause');
    same((await claimOne(store)).job.attempt, 1, 'attempt of the next run');
  },

  'an interruption before the handler was called leaves no run behind': async ({ store }) => {
    const job = await runningJob(store);
    const given = stands(await settled(store, job, 'interrupted', { neverCalled: true }), STATE.PENDING);
    same([given.attempt, given.runs], [0, 0], 'attempt and runs');
    const cancelled = accepted(await store.cancel({ id: job.id, by: OPERATOR }), 'the cancellation');
    stands(cancelled, STATE.CANCELLED);
    same((await viewOf(store, job.id)).needsYou, null, 'needs you');
  },

  'a payload refused by its own revision fails for good, and never ran': async ({ store }) => {
    const job = await runningJob(store, { compensates: true });
    const failed = stands(await settled(store, job, 'refused'), STATE.PERMANENT_FAILURE);
    same([failed.cause, failed.attempt, failed.runs], ['payload_refused', 0, 0], 'cause, attempt and runs');
    same((await store.find({ internal: true })).jobs.length, 1, 'jobs, compensations included');
  },

  'a payload refused only by an upgrade waits the cap of the backoff, and is shown as stranded': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store, { backoffMaxMs: 5_000, maxAttempts: 1 });
    const waiting = stands(await settled(store, job, 'refused', { byUpgrade: true }), STATE.SCHEDULED);
    same(waiting.startAt - clock.now(), 5_000, 'wait');
    same(
      [waiting.cause, waiting.attempt, waiting.runs],
      ['upgrade_refused', 0, 0],
      'cause, attempt and runs',
    );
    same((await viewOf(store, job.id)).needsYou, 'stranded', 'needs you');
    same((await nextAttempt(store, clock, waiting)).attempt, 1, 'attempt of the next try');
    same((await viewOf(store, job.id)).needsYou, null, 'needs you while it is tried again');
  },

  'a job that requires an effect cannot succeed without it, and keeps running': async ({ store }) => {
    const job = await runningJob(store, { requiresEffect: 'charge' });
    refused(await settleOne(store, job, 'succeeded'), 'effect_not_committed', 'success without the effect');
    same(await jobOf(store, job.id), job, 'the running job');
    stands(await settled(store, job, 'permanent'), STATE.PERMANENT_FAILURE);
  },

  'an attempt ends at the very tick its lease does: a settlement then is too late': async ({
    store,
    clock,
  }) => {
    const early = await runningJob(store);
    clock.advance(LEASE_MS - 1);
    await succeed(store, early);
    const late = await runningJob(store);
    clock.advance(LEASE_MS);
    refused(await settleOne(store, late, 'succeeded'), 'lease_lost', 'settling at the end of the lease');
    stands(await jobOf(store, late.id), STATE.PENDING);
  },

  'nothing settles a job nobody stored, and the others of the batch are settled': async ({ store }) => {
    const job = await runningJob(store);
    const missing = { id: 4_711, token: 1, worker: 'w', outcome: 'succeeded' } as const;
    const { settled: verdicts } = await store.settle([missing, settlementOf(job, 'succeeded')]);
    refused(present(verdicts[0], 'verdict'), 'unknown_job', 'the unknown one');
    stands(accepted(present(verdicts[1], 'verdict'), 'the other'), STATE.SUCCEEDED);
  },

  'a delay past its bound is refused and leaves the attempt running': async ({ store }) => {
    const job = await runningJob(store);
    const delayMs = limits.backoffMsMax + 1;
    refused(await settleOne(store, job, 'retryable', { delayMs }), 'tick_overflow', 'too long a delay');
    refused(await settleOne(store, job, 'uncertain', { delayMs }), 'tick_overflow', 'too long a delay');
    const jitterMs = limits.jitterMsMax + 1;
    refused(await settleOne(store, job, 'retryable', { jitterMs }), 'tick_overflow', 'too much jitter');
    same(await jobOf(store, job.id), job, 'the running job');
  },

  'a settlement that is not well formed throws, and nothing of its batch is settled': async ({ store }) => {
    const job = await runningJob(store);
    const good = await runningJob(store);
    for (const bad of BAD_SETTLEMENTS) {
      const batch = [settlementOf(good, 'succeeded'), { ...settlementOf(job, 'succeeded'), ...bad }];
      await rejects(() => store.settle(batch), 'invalid_input', `settling with ${JSON.stringify(bad)}`);
    }
    same([await jobOf(store, job.id), await jobOf(store, good.id)], [job, good], 'the running jobs');
  },

  'a reason is kept whatever it holds: it is made storable and never refused': async ({ store }) => {
    for (const report of [
      'lone \ud800 surrogate',
      'NUL \u0000 and \u001b[31m',
      '\u00e4'.repeat(100_000),
      '',
    ]) {
      const job = await runningJob(store);
      await settled(store, job, 'permanent', { report });
      const stored = present((await viewOf(store, job.id)).report, 'reason');
      const bytes = Buffer.byteLength(stored);
      check(bytes <= limits.reasonBytesMax, `a reason of ${bytes} bytes was stored`);
      check(isWellFormedText(stored), 'a stored reason is well-formed text');
      check(
        stored.startsWith(report.slice(0, 4)),
        `the reason begins as it was given: ${stored.slice(0, 9)}`,
      );
    }
  },

  'the worker who settles is recorded with what it reported': async ({ store }) => {
    const job = await runningJob(store);
    await succeed(store, job, '{"receipt":"r-1"}');
    const fact = present((await factsFor(store, job.id)).at(-1), 'fact');
    check(fact.type === 'settled', `the last fact is the settlement, and was ${fact.type}`);
    same([fact.worker, fact.token], ['worker-a', job.token], 'worker and token');
    const evidence = present(await store.evidence(job.id), 'evidence');
    same(evidence.texts[fact.digest], '{"receipt":"r-1"}', 'text under the digest');
  },
});

function claimAgain(): Parameters<Store['claim']>[0] {
  const definitions = [{ kind: 'transfer', revision: 1, idempotent: true }];
  return { worker: 'worker-b', leaseMs: 1_000, max: 1, requestId: unique('claim'), definitions, begin: true };
}

export const settleBatchCases: readonly ConformanceCase[] = casesOf('settle', {
  'an empty batch settles nothing and claims nothing': async ({ store }) => {
    same(await store.settle([]), { settled: [], claimed: [] }, 'answer');
  },

  'a slot that becomes free gets its next job in the same commit, the successor in its lane included':
    async ({ store }) => {
      const first = await runningJob(store, { orderingKey: 'alice' });
      const second = await enqueueOne(store, { orderingKey: 'alice' });
      const answer = await store.settle([settlementOf(first, 'succeeded')], claimAgain());
      accepted(only(answer.settled, 'verdicts'), 'the success');
      const { job, payload } = only(answer.claimed, 'deliveries');
      same([job.id, payload], [second.id, '{"cents":7}'], 'id and payload');
      check(stands(job, STATE.RUNNING).token > first.token, 'the new token is above the old one');
    },

  'a settlement that was refused does not lose the claim that came with it': async ({ store, clock }) => {
    const lost = await runningJob(store, { idempotent: false });
    clock.advance(LEASE_MS);
    const { id } = await enqueueOne(store);
    const answer = await store.settle([settlementOf(lost, 'retryable')], claimAgain());
    refused(only(answer.settled, 'verdicts'), 'lease_lost', 'the late settlement');
    same(only(answer.claimed, 'deliveries').job.id, id, 'id claimed');
  },

  'a claim that is not well formed throws, and nothing is settled': async ({ store }) => {
    const job = await runningJob(store);
    const bad = { ...claimAgain(), max: 0 };
    await rejects(() => store.settle([settlementOf(job, 'succeeded')], bad), 'invalid_input', 'a bad claim');
    same(await jobOf(store, job.id), job, 'the running job');
  },

  'an answer that was lost can be asked for again: the same settlement, the same deliveries': async ({
    store,
  }) => {
    const first = await runningJob(store);
    await enqueueOne(store);
    await enqueueOne(store);
    const claim = claimAgain();
    const settlement = settlementOf(first, 'succeeded', { report: '1' });
    const answer = await store.settle([settlement], claim);
    const again = await store.settle([settlement], claim);
    const verdict = only(again.settled, 'verdicts');
    same([verdict.ok, verdict.ok && verdict.duplicate], [true, true], 'accepted as a duplicate');
    same(again.claimed, answer.claimed, 'deliveries');
  },

  'verdicts keep the order asked': async ({ store }) => {
    const jobs = [await runningJob(store), await runningJob(store), await runningJob(store)].reverse();
    const { settled: verdicts } = await store.settle(jobs.map((job) => settlementOf(job, 'succeeded')));
    same(
      verdicts.map(({ job }) => job?.id),
      jobs.map(({ id }) => id),
      'ids in the answer',
    );
  },

  'more settlements than a batch may hold settle nothing': async ({ store }) => {
    const job = await runningJob(store);
    const batch = Array.from({ length: limits.holdersBatchMax + 1 }, () => settlementOf(job, 'succeeded'));
    await rejects(() => store.settle(batch), 'invalid_input', 'too many settlements');
    same(await jobOf(store, job.id), job, 'the running job');
  },
});
