/** Pause, resume and configure: what is said of a queue holds from that commit on, for all workers, with who said it. */
import { limits, STATE } from '../../core/index.ts';
import {
  claimIds,
  enqueueOne,
  jobOf,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
} from './build.ts';
import { accepted, only, present, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

export const queueCases: readonly ConformanceCase[] = casesOf('pause and resume', {
  'a paused queue says by whom, why and since when, also after a restart': async (opened) => {
    const { clock } = opened;
    await opened.store.pause('default', OPERATOR);
    const { store } = await opened.reopen();
    const queue = only(await store.queues(), 'queues');
    same(queue.paused, { ...OPERATOR, tick: clock.now() }, 'paused');
    await enqueueOne(store);
    same(await claimIds(store), [], 'ids claimed after the restart');
  },

  'admission stays open while a queue is paused': async ({ store }) => {
    await store.pause('default', OPERATOR);
    stands(await enqueueOne(store), STATE.PENDING);
  },

  'what runs may go on, end and be retried while its queue is paused': async ({ store, clock }) => {
    const first = await runningJob(store);
    const second = await runningJob(store);
    await store.pause('default', OPERATOR);
    await succeed(store, first);
    const retry = accepted(await settleOne(store, second, 'retryable', { delayMs: 1 }), 'the retry');
    clock.set(retry.startAt);
    same(await claimIds(store), [], 'ids claimed while paused');
    await store.resume('default', OPERATOR);
    same(await claimIds(store), [second.id], 'ids claimed once resumed');
  },

  'time passes in a paused queue too': async ({ store, clock }) => {
    const job = await enqueueOne(store, { deadline: clock.now() + 10 });
    await store.pause('default', OPERATOR);
    clock.advance(10);
    same((await store.lapse(500)).ids, [job.id], 'lapsed');
    stands(await jobOf(store, job.id), STATE.DEAD_LETTERED);
  },

  'internal jobs can be claimed while their queue is paused': async (opened) => {
    const { store, clock } = opened;
    const parent = await uncertainJob(opened, { reconciles: true, reconcileAfterMs: 1 });
    const waiting = await enqueueOne(store);
    await store.pause('default', OPERATOR);
    clock.advance(1);
    const [id] = await claimIds(store, { max: 500 });
    const job = await jobOf(store, present(id, 'id'));
    same(job.submission.internal?.parentId, parent.id, 'parent of what was claimed');
    same((await jobOf(store, waiting.id)).state, STATE.PENDING, 'state of the other');
  },

  'pausing one queue pauses no other, and a queue nobody used can be paused': async ({ store }) => {
    await store.pause('nobody', OPERATOR);
    const { id } = await enqueueOne(store);
    same(await claimIds(store, { max: 500 }), [id], 'ids claimed');
  },

  'pausing what is paused and resuming what runs is harmless': async ({ store }) => {
    await store.resume('default', OPERATOR);
    await store.pause('default', OPERATOR);
    await store.pause('default', OPERATOR);
    await store.resume('default', OPERATOR);
    const { id } = await enqueueOne(store);
    same(await claimIds(store), [id], 'ids claimed');
  },

  'every act on a queue is recorded, with who and why': async ({ store, clock }) => {
    await store.pause('default', { actor: 'olga', reason: 'bank is down' });
    await store.configure('default', { maxUnresolved: 5 }, { actor: 'piet' });
    clock.advance(7);
    await store.resume('default', { actor: 'olga', reason: null });
    const acts = (await store.acts()).map(({ act, actor, reason, tick }) => [act, actor, reason, tick]);
    const now = clock.now();
    const expected = [
      ['pause', 'olga', 'bank is down', now - 7],
      ['configure', 'piet', null, now - 7],
      ['resume', 'olga', null, now],
    ];
    same(acts, expected, 'acts');
  },

  'what is not well formed throws and changes no queue': async ({ store }) => {
    const bad = [-1, 0.5, Number.NaN, limits.maxUnresolvedMax + 1];
    for (const maxUnresolved of bad) {
      const call = (): Promise<void> => store.configure('default', { maxUnresolved }, OPERATOR);
      await rejects(call, 'invalid_input', `a bound of ${maxUnresolved}`);
    }
    await rejects(() => store.pause('', OPERATOR), 'invalid_input', 'a queue without a name');
    await rejects(() => store.pause('default', { actor: '' }), 'invalid_input', 'an act by nobody');
    await rejects(
      () => store.resume('a\u0007', OPERATOR),
      'invalid_input',
      'a name with a control character',
    );
    same([await store.acts(), await store.queues()], [[], []], 'acts and queues');
  },

  'a bound can be changed without resuming, and a pause without losing the bound': async ({ store }) => {
    await store.configure('default', { maxUnresolved: 3 }, OPERATOR);
    await store.pause('default', OPERATOR);
    await store.configure('default', { maxUnresolved: 4 }, OPERATOR);
    const paused = only(await store.queues(), 'queues');
    same([paused.maxUnresolved, paused.paused?.actor], [4, OPERATOR.actor], 'bound and pause');
    await store.resume('default', OPERATOR);
    const resumed = only(await store.queues(), 'queues');
    same([resumed.maxUnresolved, resumed.paused], [4, null], 'bound and pause once resumed');
  },
});
