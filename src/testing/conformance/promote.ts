/** Promote: a wait is cut short by somebody, and nothing but the wait. */
import { STATE } from '../../core/index.ts';
import {
  claimIds,
  enqueueMany,
  enqueueOne,
  factTypes,
  failedJob,
  jobOf,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
} from './build.ts';
import { accepted, present, refused, same, stands } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

export const promoteCases: readonly ConformanceCase[] = casesOf('promote', {
  'a SCHEDULED job is due now': async ({ store, clock }) => {
    const { id } = await enqueueOne(store, { delayMs: 50_000 });
    clock.advance(10);
    const job = stands(accepted(await store.promote({ id, by: OPERATOR }), 'promoting'), STATE.SCHEDULED);
    same([job.startAt, job.version], [clock.now(), 1], 'start and version');
    same(await factTypes(store, id), ['promoted'], 'facts');
    same(await claimIds(store), [id], 'ids claimed');
  },

  'a retry need not be waited for either, and its attempts still count': async ({ store }) => {
    const job = await runningJob(store, { maxAttempts: 2 });
    accepted(await settleOne(store, job, 'retryable'), 'the retry');
    accepted(await store.promote({ id: job.id, by: OPERATOR }), 'promoting');
    same(await claimIds(store), [job.id], 'ids claimed');
    same((await jobOf(store, job.id)).attempt, 2, 'attempt');
  },

  'a promoted job does not pass its lane': async ({ store }) => {
    const [head, second] = await enqueueMany(store, [
      { orderingKey: 'alice', delayMs: 100 },
      { orderingKey: 'alice', delayMs: 100 },
    ]);
    accepted(await store.promote({ id: present(second, 'job').id, by: OPERATOR }), 'promoting');
    same(await claimIds(store, { max: 500 }), [], 'ids claimed');
    accepted(await store.promote({ id: present(head, 'job').id, by: OPERATOR }), 'promoting the head');
    same(await claimIds(store, { max: 500 }), [present(head, 'job').id], 'ids claimed');
  },

  'a promoted occurrence does not move the slots after it': async ({ store }) => {
    const recurrence = { intervalMs: 10_000, maxOccurrences: 3, maxCatchUp: 0 };
    const job = await succeed(store, await runningJob(store, { recurrence }));
    const promoted = accepted(await store.promote({ id: job.id, by: OPERATOR }), 'promoting');
    same(promoted.slotAt, job.slotAt, 'slot');
    same(await claimIds(store), [job.id], 'ids claimed');
    const next = await succeed(store, await jobOf(store, job.id));
    same(next.startAt, job.startAt + 10_000, 'start of the next occurrence');
  },

  'only what waits for a start can be promoted': async (opened) => {
    const { store } = opened;
    const by = OPERATOR;
    const pending = await enqueueOne(store, { queue: 'waiting' });
    refused(await store.promote({ id: pending.id, by }), 'wrong_state', 'promoting a PENDING job');
    const running = await runningJob(store);
    refused(await store.promote({ id: running.id, by }), 'wrong_state', 'promoting a RUNNING job');
    await succeed(store, running);
    const failed = await failedJob(store);
    refused(await store.promote({ id: failed.id, by }), 'terminal', 'promoting a failed job');
    const uncertain = await uncertainJob(opened);
    refused(await store.promote({ id: uncertain.id, by }), 'wrong_state', 'promoting an UNCERTAIN job');
    refused(await store.promote({ id: 4_711, by }), 'unknown_job', 'promoting an unknown job');
    same(await jobOf(store, pending.id), pending, 'the pending job');
  },

  'who promotes what they saw is refused when the job has moved since': async ({ store }) => {
    const seen = await enqueueOne(store, { delayMs: 100 });
    const request = { id: seen.id, by: OPERATOR, version: seen.version };
    accepted(await store.promote(request), 'promoting what was seen');
    refused(await store.promote(request), 'version_mismatch', 'promoting an old version');
  },

  'no promotion passes a deadline': async ({ store, clock }) => {
    const { id } = await enqueueOne(store, { delayMs: 50, deadline: clock.now() + 100 });
    clock.advance(100);
    refused(await store.promote({ id, by: OPERATOR }), 'terminal', 'promoting at the deadline');
    stands(await jobOf(store, id), STATE.DEAD_LETTERED);
  },
});
