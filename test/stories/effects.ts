/** Stories of effects: money moves once, whatever is redelivered, restarted, buried or said twice. */
import { STATE } from '../../src/core/index.ts';
import {
  addCents,
  balanceOf,
  claimOne,
  factTypes,
  holderOf,
  jobOf,
  LEASE_MS,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  viewOf,
} from '../../src/testing/conformance/build.ts';
import {
  accepted,
  check,
  duplicate,
  present,
  refused,
  same,
  stands,
} from '../../src/testing/conformance/check.ts';
import type { ConformanceCase } from '../../src/testing/index.ts';
import { stories } from './story.ts';

export const effectStories: readonly ConformanceCase[] = stories({
  'commit, restart, redeliver: seven is added once, the attempt is higher, and no token comes again': async (
    opened,
  ) => {
    const first = await runningJob(opened.store, { requiresEffect: 'add-7' });
    same(await addCents(opened, first, 'add-7', 7), false, 'done before');
    const second = await opened.reopen();
    opened.clock.advance(LEASE_MS);
    const again = (await claimOne(second.store, { worker: 'after-restart' })).job;
    same([again.id, again.attempt, again.delivery], [first.id, 2, 2], 'id, attempt and delivery');
    check(again.token > first.token, `token ${again.token} must be above ${first.token}`);
    same(await addCents(second, again, 'add-7', 7), true, 'done before, after the restart');
    await succeed(second.store, again);
    const third = await second.reopen();
    stands(await jobOf(third.store, first.id), STATE.SUCCEEDED);
    same(await balanceOf(third), 7, 'balance');
    const later = await runningJob(third.store);
    check(later.token > again.token, `the next token ${later.token} must be above ${again.token}`);
  },

  'a crash between effect and settlement: the store that comes back knows the effect and not the success':
    async (opened) => {
      const job = await runningJob(opened.store, { requiresEffect: 'add-7', idempotent: false });
      await addCents(opened, job, 'add-7', 7);
      const { store } = await opened.reopen();
      opened.clock.advance(LEASE_MS);
      await store.lapse(500);
      const lost = stands(await jobOf(store, job.id), STATE.UNCERTAIN);
      same(lost.requiredEffectCommitted, true, 'effect committed');
      const decision = { ...holderOf(job), decision: 'succeeded', by: OPERATOR } as const;
      stands(accepted(await store.reconcile(decision), 'the decision'), STATE.SUCCEEDED);
    },

  'acknowledge before commit: a success is refused until its effect stands, and the job goes on': async (
    opened,
  ) => {
    const { store } = opened;
    const job = await runningJob(store, { requiresEffect: 'add-7' });
    refused(await settleOne(store, job, 'succeeded'), 'effect_not_committed', 'the early success');
    stands(await jobOf(store, job.id), STATE.RUNNING);
    same(await balanceOf(opened), 0, 'balance');
    await addCents(opened, job, 'add-7', 7);
    stands(await succeed(store, job), STATE.SUCCEEDED);
    same(await balanceOf(opened), 7, 'balance');
  },

  'another effect than the required one does not count for it': async (opened) => {
    const { store } = opened;
    const job = await runningJob(store, { requiresEffect: 'add-7' });
    await addCents(opened, job, 'add-8', 8);
    refused(await settleOne(store, job, 'succeeded'), 'effect_not_committed', 'the success');
  },

  'a committed effect remains when its job later dies, and a redrive does not add it again': async (
    opened,
  ) => {
    const { store, clock } = opened;
    const job = await runningJob(store, { maxAttempts: 1 });
    await addCents(opened, job, 'add-7', 7);
    clock.advance(LEASE_MS);
    await store.lapse(500);
    stands(await jobOf(store, job.id), STATE.DEAD_LETTERED);
    same(await balanceOf(opened), 7, 'balance after the death');
    same((await factTypes(store, job.id)).includes('effect_committed'), true, 'the effect is in the history');
    check((await store.redrive({ id: job.id, by: OPERATOR })).ok, 'the redrive is accepted');
    const again = (await claimOne(store)).job;
    same(await addCents(opened, again, 'add-7', 7), true, 'done before');
    await succeed(store, again);
    same(await balanceOf(opened), 7, 'balance after the redrive');
  },

  'a zombie cannot commit an effect beside the new holder, and its own change is rolled back': async (
    opened,
  ) => {
    const { store, clock, account } = opened;
    const zombie = await runningJob(store);
    clock.advance(LEASE_MS);
    const holder = (await claimOne(store, { worker: 'worker-b' })).job;
    const late = await store.transact(holderOf(zombie), (tx) =>
      tx.commitEffect('add-7', { cents: 7 }, () => account.add(tx.application, 7)),
    );
    refused(late, 'stale_token', 'the effect of the zombie');
    same(await addCents(opened, holder, 'add-7', 7), false, 'done before');
    await succeed(store, holder);
    same(await balanceOf(opened), 7, 'balance');
  },

  'a process that dies inside its transaction leaves nothing of it': async (opened) => {
    const { store, clock, account } = opened;
    const job = await runningJob(store);
    const crash = new Error('killed');
    let thrown: unknown = null;
    try {
      await store.transact(holderOf(job), (tx) => {
        tx.commitEffect('add-7', { cents: 7 }, () => account.add(tx.application, 7));
        tx.settle({ outcome: 'succeeded' });
        throw crash;
      });
    } catch (error) {
      thrown = error;
    }
    same(thrown === crash, true, 'the crash comes out');
    same(await balanceOf(opened), 0, 'balance');
    clock.advance(LEASE_MS);
    const again = (await claimOne(store)).job;
    same(await addCents(opened, again, 'add-7', 7), false, 'done before');
    await succeed(store, again);
    same(await balanceOf(opened), 7, 'balance');
  },

  'a lost answer is asked for again: the same settlement counts once, with its effect': async (opened) => {
    const { store, account } = opened;
    const job = await runningJob(store, { requiresEffect: 'add-7' });
    const done = await store.transact(holderOf(job), (tx) => {
      tx.commitEffect('add-7', { cents: 7 }, () => account.add(tx.application, 7));
      return tx.settle({ outcome: 'succeeded', report: '{"sum":7}' });
    });
    check(done.ok, 'the transaction is accepted');
    const again = await settleOne(store, job, 'succeeded', { report: '{"sum":7}' });
    same(duplicate(again, 'the settlement again').state, STATE.SUCCEEDED, 'state');
    same((await viewOf(store, job.id)).report, '{"sum":7}', 'result');
    same(await balanceOf(opened), 7, 'balance');
  },

  'an open step that must not run twice stops every retry until somebody says what became of it': async (
    opened,
  ) => {
    const { store, clock } = opened;
    const step = { descriptor: { wire: 7 }, idempotent: false };
    const job = await runningJob(store, { maxAttempts: 3 });
    await store.transact(holderOf(job), (tx) => tx.beginStep('wire', step));
    clock.advance(LEASE_MS);
    const again = (await claimOne(store)).job;
    refused(
      await store.transact(holderOf(again), (tx) => tx.beginStep('wire', step)),
      'step_open',
      'the step',
    );
    stands(accepted(await settleOne(store, again, 'uncertain'), 'the settlement'), STATE.UNCERTAIN);
    const decision = { ...holderOf(again), decision: 'retry', by: OPERATOR } as const;
    refused(await store.reconcile(decision), 'step_open', 'a retry that says nothing of the step');
    const steps = [{ key: 'wire', tookPlace: true, result: 'w-1' }];
    stands(accepted(await store.reconcile({ ...decision, steps }), 'the decision'), STATE.PENDING);
    const last = (await claimOne(store)).job;
    const known = await store.transact(holderOf(last), (tx) => tx.beginStep('wire', step));
    same(known.ok && known.value, { status: 'done', result: 'w-1' }, 'the step in the last attempt');
    same(present(last.lease, 'lease').token, last.token, 'token');
  },
});
