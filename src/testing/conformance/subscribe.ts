/** Subscribe: a wake is a hint; it never comes before its commit, and what a listener does with it disturbs nobody. */
import { STATE } from '../../core/index.ts';
import { claimIds, enqueueOne, runningJob, succeed } from './build.ts';
import { check, same, stands } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

export const subscribeCases: readonly ConformanceCase[] = casesOf('subscribe', {
  'a wake names its queues, and what it hints at is committed': async ({ store }) => {
    const seen: Promise<unknown>[] = [];
    const queues: string[] = [];
    const stop = store.subscribe((hint) => {
      queues.push(...hint.queues);
      seen.push(store.find({ queues: hint.queues }));
    });
    await enqueueOne(store, { queue: 'mail' });
    await Promise.all(seen);
    stop();
    check(
      queues.every((queue) => queue === 'mail'),
      `queues that were named: ${queues.join()}`,
    );
  },

  'a listener that throws disturbs neither the verb nor the others': async ({ store }) => {
    const stop = store.subscribe(() => {
      throw new Error('a listener of its own');
    });
    const job = stands(await runningJob(store), STATE.RUNNING);
    await succeed(store, job);
    stop();
  },

  'who stopped listening is not called any more, and stopping twice is harmless': async ({ store }) => {
    let calls = 0;
    const stop = store.subscribe(() => {
      calls += 1;
    });
    stop();
    stop();
    await enqueueOne(store);
    same(calls, 0, 'calls');
  },

  'no work depends on a wake: without any listener everything is found by asking': async ({ store }) => {
    const { id } = await enqueueOne(store);
    same(await claimIds(store), [id], 'ids claimed');
  },
});
