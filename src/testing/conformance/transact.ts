/** Transact: an effect, its mark, its history and whatever goes with it commit together, at most once, or not at all. */
import { type Job, limits, type Refusal, STATE } from '../../core/index.ts';
import type { Holder, Store, StoreTransaction } from '../../store/store.ts';
import {
  addCents,
  balanceOf,
  claimOne,
  enqueueOne,
  factTypes,
  holderOf,
  jobOf,
  jobRequest,
  LEASE_MS,
  leaseOne,
  runningJob,
  settleOne,
  succeed,
  unique,
  viewOf,
} from './build.ts';
import { accepted, check, present, refused, rejects, same, stands } from './check.ts';
import { type ConformanceCase, casesOf, type OpenedStore } from './harness.ts';

/** The transaction must be refused without a trace: `apply` never ran, and the balance is what it was. */
async function refusesEffect(opened: OpenedStore, holder: Holder, refusal: Refusal): Promise<void> {
  const { store, account } = opened;
  let ran = false;
  const answer = await store.transact({ id: holder.id, token: holder.token }, (tx) =>
    tx.commitEffect('charge', { cents: 7 }, () => {
      ran = true;
      account.add(tx.application, 7);
    }),
  );
  refused(answer, refusal, 'the transaction');
  same(ran, false, 'the effect ran');
  same(await balanceOf(opened), 0, 'balance');
}

/** A running job with a transaction that adds 7 and then does what it is told; all of it must be rolled back. */
async function rollsBack(
  opened: OpenedStore,
  job: Job,
  then: (tx: StoreTransaction) => unknown,
  what: string,
): Promise<Error> {
  const { store, account } = opened;
  const before = await viewOf(store, job.id);
  const failed = await thrownBy(() =>
    store.transact(holderOf(job), (tx) => {
      tx.commitEffect('charge', { cents: 7 }, () => account.add(tx.application, 7));
      tx.enqueue([jobRequest({ queue: 'followers' })]);
      return then(tx);
    }),
  );
  same(await viewOf(store, job.id), before, `${what}: the job`);
  same((await store.find({ queues: ['followers'] })).jobs, [], `${what}: jobs enqueued with it`);
  same(await balanceOf(opened), 0, `${what}: balance`);
  return present(failed, `${what}: what was thrown`);
}

async function thrownBy(call: () => Promise<unknown>): Promise<Error | null> {
  try {
    await call();
    return null;
  } catch (error) {
    return error instanceof Error ? error : null;
  }
}

export const transactCases: readonly ConformanceCase[] = casesOf('transact', {
  'an effect, its mark, its entry and the state it changed commit together': async (opened) => {
    const { store, account } = opened;
    const job = await runningJob(store);
    const answer = await store.transact(holderOf(job), (tx) => {
      same([tx.now, tx.job.id], [opened.clock.now(), job.id], 'clock and job of the transaction');
      return tx.commitEffect('charge', { cents: 7 }, () => {
        account.add(tx.application, 7);
        return { receipt: 'r-1' };
      });
    });
    check(answer.ok, 'the transaction must be accepted');
    same(answer.value, { duplicate: false, result: { receipt: 'r-1' } }, 'value');
    same(answer.job, await jobOf(store, job.id), 'the answer and what is stored');
    same(await factTypes(store, job.id), ['claimed', 'begun', 'effect_committed'], 'facts');
    same(await balanceOf(opened), 7, 'balance');
  },

  'an effect that was committed is not run again, in this attempt or a later one, also after a restart':
    async (opened) => {
      const { clock } = opened;
      const job = await runningJob(opened.store);
      same(await addCents(opened, job, 'charge', 7), false, 'done before the first time');
      same(await addCents(opened, job, 'charge', 7), true, 'done before the second time');
      const restarted = await opened.reopen();
      clock.advance(LEASE_MS);
      const again = (await claimOne(restarted.store)).job;
      const answer = await restarted.store.transact(holderOf(again), (tx) =>
        tx.commitEffect('charge', { cents: 7 }, () => present(null, 'an effect that must not run')),
      );
      check(answer.ok, 'the transaction of the next attempt must be accepted');
      same(answer.value, { duplicate: true, result: { added: 7 } }, 'stored result');
      same(await balanceOf(restarted), 7, 'balance');
    },

  'an effect key used again with another descriptor is a conflict, and takes everything with it': async (
    opened,
  ) => {
    const { store, account } = opened;
    const job = await runningJob(store);
    await addCents(opened, job, 'charge', 7);
    const before = await viewOf(store, job.id);
    const answer = await store.transact(holderOf(job), (tx) => {
      tx.commitEffect('other', {}, () => account.add(tx.application, 100));
      return tx.commitEffect('charge', { cents: 8 }, () => account.add(tx.application, 8));
    });
    refused(answer, 'effect_conflict', 'the transaction');
    same(await viewOf(store, job.id), before, 'the job');
    same(await balanceOf(opened), 7, 'balance');
  },

  'a refusal that apply caught and went on from still rolls everything back': async (opened) => {
    const { store, account } = opened;
    const job = await runningJob(store);
    await addCents(opened, job, 'charge', 7);
    const answer = await store.transact(holderOf(job), (tx) => {
      try {
        tx.commitEffect('charge', { cents: 8 }, () => null);
      } catch {
        account.add(tx.application, 100);
      }
    });
    refused(answer, 'effect_conflict', 'the transaction');
    same(await balanceOf(opened), 7, 'balance');
  },

  'keys belong to one lineage: another job commits under the same key for itself': async (opened) => {
    const { store } = opened;
    same(await addCents(opened, await runningJob(store), 'charge', 7), false, 'done before, first job');
    same(await addCents(opened, await runningJob(store), 'charge', 7), false, 'done before, second job');
    same(await balanceOf(opened), 14, 'balance');
  },

  'only the holder of a running job commits: everyone else is told why, and nothing runs': async (opened) => {
    const { store, clock } = opened;
    await refusesEffect(opened, { id: 4_711, token: 1 }, 'unknown_job');
    await enqueueOne(store, { queue: 'leased' });
    const leased = await leaseOne(store, { queues: ['leased'] });
    await refusesEffect(opened, leased, 'wrong_state');
    const done = await runningJob(store);
    await succeed(store, done);
    await refusesEffect(opened, done, 'already_settled');
    const zombie = await runningJob(store);
    clock.advance(LEASE_MS);
    await claimOne(store, { queues: ['default'] });
    await refusesEffect(opened, zombie, 'stale_token');
  },

  'a commit at the very end of the lease is too late, and the lapse is kept': async (opened) => {
    const { store, clock } = opened;
    const job = await runningJob(store, { idempotent: false });
    clock.advance(LEASE_MS);
    await refusesEffect(opened, job, 'lease_lost');
    stands(await jobOf(store, job.id), STATE.UNCERTAIN);
  },

  'what apply throws rolls everything back and comes out as it was thrown': async (opened) => {
    const mine = new Error('no such account');
    const job = await runningJob(opened.store);
    const thrown = await rollsBack(
      opened,
      job,
      () => {
        throw mine;
      },
      'a throw',
    );
    same(thrown === mine, true, 'the very error that was thrown');
    await addCents(opened, job, 'charge', 7);
    same(await balanceOf(opened), 7, 'balance after trying again');
  },

  'a promise would go on after the commit: it is refused and everything rolled back': async (opened) => {
    const job = await runningJob(opened.store);
    const outside = await rollsBack(opened, job, async () => 1, 'an asynchronous apply');
    const inside = await rollsBack(
      opened,
      job,
      (tx) => tx.commitEffect('other', {}, () => Promise.resolve(1)),
      'an asynchronous effect',
    );
    for (const error of [outside, inside]) {
      await rejects(() => Promise.reject(error), 'invalid_input', 'a promise in a transaction');
    }
  },

  'jobs enqueued in the transaction commit with it, and a refused one is no reason to throw': async (
    opened,
  ) => {
    const { store, clock } = opened;
    const job = await runningJob(store);
    const idempotencyKey = unique('key');
    const answer = await store.transact(holderOf(job), (tx) =>
      tx.enqueue([
        jobRequest({ idempotencyKey }),
        jobRequest({ deadline: clock.now() }),
        jobRequest({ idempotencyKey }),
      ]),
    );
    check(answer.ok, 'the transaction must be accepted');
    same(
      answer.value.map(({ status }) => status),
      ['created', 'refused', 'duplicate'],
      'verdicts',
    );
    const found = present(await store.getByKey(idempotencyKey), 'the key');
    stands(present(found.view, 'the job').job, STATE.PENDING);
  },

  'a bad request inside throws and rolls everything back': async (opened) => {
    const job = await runningJob(opened.store);
    const error = await rollsBack(
      opened,
      job,
      (tx) => tx.enqueue([jobRequest({ priority: 2_000 })]),
      'a bad job',
    );
    await rejects(() => Promise.reject(error), 'invalid_input', 'a bad job in a transaction');
  },

  'the settlement commits with the effect it requires': async (opened) => {
    const { store, account } = opened;
    const job = await runningJob(store, { requiresEffect: 'charge' });
    const answer = await store.transact(holderOf(job), (tx) => {
      tx.commitEffect('charge', { cents: 7 }, () => account.add(tx.application, 7));
      return tx.settle({ outcome: 'succeeded', report: '{"paid":7}' });
    });
    check(answer.ok, 'the transaction must be accepted');
    stands(answer.value, STATE.SUCCEEDED);
    same(answer.job, await jobOf(store, job.id), 'the answer and what is stored');
    same((await viewOf(store, job.id)).report, '{"paid":7}', 'result');
    same(await balanceOf(opened), 7, 'balance');
  },

  'a settlement that is refused inside rolls back what came before it': async (opened) => {
    const { store, account } = opened;
    const job = await runningJob(store, { requiresEffect: 'charge' });
    const answer = await store.transact(holderOf(job), (tx) => {
      tx.commitEffect('other', {}, () => account.add(tx.application, 7));
      return tx.settle({ outcome: 'succeeded' });
    });
    refused(answer, 'effect_not_committed', 'the transaction');
    same(await jobOf(store, job.id), job, 'the running job');
    same(await balanceOf(opened), 0, 'balance');
  },

  'nothing may follow the settlement: what does rolls it back': async (opened) => {
    const job = await runningJob(opened.store);
    const follow: Readonly<Record<string, (tx: StoreTransaction) => unknown>> = {
      'another effect': (tx) => tx.commitEffect('late', {}, () => null),
      'a step': (tx) => tx.beginStep('late', { descriptor: null, idempotent: true }),
      'a job': (tx) => tx.enqueue([jobRequest()]),
      'another settlement': (tx) => tx.settle({ outcome: 'permanent' }),
    };
    for (const [what, then] of Object.entries(follow)) {
      const error = await rollsBack(
        opened,
        job,
        (tx) => {
          tx.settle({ outcome: 'succeeded' });
          return then(tx);
        },
        `${what} after the settlement`,
      );
      await rejects(() => Promise.reject(error), 'invalid_input', `${what} after the settlement`);
    }
  },

  'a transaction kept for later does nothing': async (opened) => {
    const { store } = opened;
    const job = await runningJob(store);
    const kept: StoreTransaction[] = [];
    await store.transact(holderOf(job), (tx) => {
      kept.push(tx);
    });
    const tx = present(kept[0], 'transaction');
    await rejects(async () => tx.commitEffect('late', {}, () => null), 'invalid_input', 'a late effect');
    await rejects(async () => tx.settle({ outcome: 'succeeded' }), 'invalid_input', 'a late settlement');
    same(await jobOf(store, job.id), job, 'the running job');
  },

  'a result that JSON cannot keep rolls the effect back': async (opened) => {
    const job = await runningJob(opened.store);
    const error = await rollsBack(
      opened,
      job,
      (tx) => tx.commitEffect('other', {}, () => ({ cents: 7n })),
      'a result that is no JSON',
    );
    await rejects(() => Promise.reject(error), 'invalid_input', 'a result that is no JSON');
  },

  'an effect that is required and committed lets a later attempt succeed without it': async (opened) => {
    const { store, clock } = opened;
    const job = await runningJob(store, { requiresEffect: 'charge' });
    await addCents(opened, job, 'charge', 7);
    clock.advance(LEASE_MS);
    await succeed(store, (await claimOne(store)).job);
    same(await balanceOf(opened), 7, 'balance');
  },
});

const STEP = { descriptor: { to: 'bank' }, idempotent: false } as const;

async function beginStep(store: Store, job: Job, key: string, idempotent = false): Promise<unknown> {
  const answer = await store.transact(holderOf(job), (tx) => tx.beginStep(key, { ...STEP, idempotent }));
  return answer.ok ? answer.value : answer.refused;
}

async function finishStep(store: Store, job: Job, key: string, result: unknown): Promise<Refusal | null> {
  const answer = await store.transact(holderOf(job), (tx) => tx.finishStep(key, result));
  return answer.ok ? null : answer.refused;
}

export const transactStepCases: readonly ConformanceCase[] = casesOf('transact', {
  'a step that was done answers its result, in a later attempt and after a restart too': async (opened) => {
    const job = await runningJob(opened.store);
    same(await beginStep(opened.store, job, 'wire'), { status: 'begun' }, 'the first begin');
    same((await jobOf(opened.store, job.id)).openSteps, [{ key: 'wire', idempotent: false }], 'open steps');
    same(await finishStep(opened.store, job, 'wire', { wire: 1 }), null, 'refusal of the end');
    const { store } = await opened.reopen();
    opened.clock.advance(LEASE_MS);
    const again = (await claimOne(store)).job;
    same(again.openSteps, [], 'open steps of the next attempt');
    same(await beginStep(store, again, 'wire'), { status: 'done', result: { wire: 1 } }, 'the next begin');
    const facts = ['claimed', 'begun', 'step_begun', 'step_done', 'lapsed', 'claimed', 'begun'];
    same(await factTypes(store, job.id), facts, 'facts');
  },

  'a step that must not run twice and was begun without being done is not begun again': async ({
    store,
    clock,
  }) => {
    const job = await runningJob(store);
    await beginStep(store, job, 'wire');
    same(await beginStep(store, job, 'wire'), 'step_open', 'the second begin');
    clock.advance(LEASE_MS);
    const again = (await claimOne(store)).job;
    same(await beginStep(store, again, 'wire'), 'step_open', 'the begin of the next attempt');
    same(await beginStep(store, again, 'wire', true), 'step_open', 'a begin that calls it idempotent now');
    const verdict = await settleOne(store, again, 'uncertain');
    stands(accepted(verdict, 'the uncertain settlement'), STATE.UNCERTAIN, 'since its step is open');
  },

  'an idempotent step that was begun without being done may run again': async ({ store, clock }) => {
    const job = await runningJob(store);
    await beginStep(store, job, 'wire', true);
    clock.advance(LEASE_MS);
    const again = (await claimOne(store)).job;
    same(await beginStep(store, again, 'wire', true), { status: 'begun' }, 'the next begin');
    same(await finishStep(store, again, 'wire', 2), null, 'refusal of the end');
    same(await beginStep(store, again, 'wire', true), { status: 'done', result: 2 }, 'the last begin');
  },

  'a step or effect keeps its content: another descriptor under its key is a conflict': async (opened) => {
    const { store } = opened;
    const job = await runningJob(store);
    await beginStep(store, job, 'wire');
    const other = await store.transact(holderOf(job), (tx) =>
      tx.beginStep('wire', { descriptor: { to: 'other' }, idempotent: false }),
    );
    refused(other, 'effect_conflict', 'a step with another descriptor');
    const effect = await store.transact(holderOf(job), (tx) =>
      tx.commitEffect('wire', STEP.descriptor, () => 1),
    );
    refused(effect, 'effect_conflict', 'an effect under the key of an open step');
    await addCents(opened, job, 'charge', 7);
    const step = await store.transact(holderOf(job), (tx) =>
      tx.beginStep('charge', { descriptor: { cents: 7 }, idempotent: true }),
    );
    refused(step, 'effect_conflict', 'a step under the key of an effect');
  },

  'a step that is not open cannot be done': async ({ store }) => {
    const job = await runningJob(store);
    same(await finishStep(store, job, 'wire', 1), 'effect_conflict', 'the end of a step never begun');
    await beginStep(store, job, 'wire');
    await finishStep(store, job, 'wire', 1);
    same(await finishStep(store, job, 'wire', 2), 'effect_conflict', 'the end of a step done before');
    same(await beginStep(store, job, 'wire'), { status: 'done', result: 1 }, 'the step');
  },

  'no more steps can be open than their bound, and one that is done makes room': async ({ store }) => {
    const job = await runningJob(store, {}, { leaseMs: 60_000 });
    const all = await store.transact(holderOf(job), (tx) => {
      for (let step = 0; step < limits.openStepsMax; step += 1) tx.beginStep(`step-${step}`, STEP);
    });
    check(all.ok, 'as many steps as the bound allows');
    same(await beginStep(store, job, 'one-more'), 'step_open', 'one step more');
    await finishStep(store, job, 'step-7', null);
    same(await beginStep(store, job, 'one-more'), { status: 'begun' }, 'one step more once there is room');
  },

  'a late holder ends no step of the next one': async ({ store, clock }) => {
    const zombie = await runningJob(store);
    await beginStep(store, zombie, 'wire', true);
    clock.advance(LEASE_MS);
    await claimOne(store);
    same(await finishStep(store, zombie, 'wire', 1), 'stale_token', 'the end reported by the zombie');
    same((await jobOf(store, zombie.id)).openSteps.length, 1, 'open steps');
  },
});
