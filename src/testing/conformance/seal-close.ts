/** Seal and close: a store that was moved or closed takes no work, says so, and has changed nothing since. */

import type { Job } from '../../core/index.ts';
import { StoreSealedError } from '../../store/errors.ts';
import type { Store } from '../../store/store.ts';
import {
  claimRequest,
  enqueueOne,
  holderOf,
  jobOf,
  jobRequest,
  OPERATOR,
  runningJob,
  settlementOf,
  viewOf,
} from './build.ts';
import { check, present, rejects, same } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

/** Every verb that changes something, by name, each valid but for the store it is asked of. */
function changes(store: Store, job: Job): Readonly<Record<string, () => Promise<unknown>>> {
  const holder = holderOf(job);
  const request = { id: job.id, by: OPERATOR };
  return {
    enqueue: () => store.enqueue([jobRequest()]),
    claim: () => store.claim(claimRequest()),
    begin: () => store.begin([holder]),
    extend: () => store.extend([{ ...holder, extendMs: 5_000 }]),
    settle: () => store.settle([settlementOf(job, 'succeeded')]),
    transact: () => store.transact(holder, () => 1),
    lapse: () => store.lapse(10),
    cancel: () => store.cancel(request),
    reconcile: () => store.reconcile({ ...holder, decision: 'failed', by: OPERATOR }),
    promote: () => store.promote(request),
    redrive: () => store.redrive(request),
    dismiss: () => store.dismiss(request),
    pause: () => store.pause('default', OPERATOR),
    resume: () => store.resume('default', OPERATOR),
    configure: () => store.configure('default', { maxUnresolved: 1 }, OPERATOR),
    register: () => store.register({ worker: 'w', definitions: [] }),
    prune: () => store.prune({ by: OPERATOR }),
  };
}

function reads(store: Store, id: number): Readonly<Record<string, () => Promise<unknown>>> {
  return {
    get: () => store.get(id),
    getByKey: () => store.getByKey('key'),
    find: () => store.find({ internal: true }),
    counts: () => store.counts(),
    queues: () => store.queues(),
    lanes: () => store.lanes(10),
    workers: () => store.workers(),
    evidence: () => store.evidence(id),
    explain: () => store.explain(id, []),
    acts: () => store.acts(),
    snapshot: () => store.snapshot(),
  };
}

export const sealCases: readonly ConformanceCase[] = casesOf('seal and close', {
  'a sealed store refuses every change and says where the jobs went': async (opened) => {
    const { store } = opened;
    const job = await runningJob(store);
    await store.seal('postgres://new', { actor: 'olga', reason: 'moved' });
    const before = await viewOf(store, job.id);
    for (const [verb, call] of Object.entries(changes(store, job))) {
      const error = await rejects(call, 'store_sealed', `${verb} on a sealed store`);
      check(error instanceof StoreSealedError, 'it is a StoreSealedError');
      same(error.movedTo, 'postgres://new', 'where the jobs went');
    }
    same(await viewOf(store, job.id), before, 'the job');
  },

  'reading a sealed store still works, and the seal is an act': async ({ store }) => {
    const job = await runningJob(store);
    await store.seal('postgres://new', { actor: 'olga', reason: 'moved' });
    for (const read of Object.values(reads(store, job.id))) await read();
    const act = present((await store.acts()).at(-1), 'act');
    same([act.act, act.actor, act.reason], ['seal', 'olga', 'moved'], 'act');
    same(await jobOf(store, job.id), job, 'the job');
  },

  'a sealed store is sealed after a restart, and its copy elsewhere is not': async (opened) => {
    const { id } = await enqueueOne(opened.store);
    await opened.store.seal('elsewhere', OPERATOR);
    const target = await opened.fresh();
    await target.store.restore(await opened.store.snapshot(), { as: 'copy', by: OPERATOR });
    same(
      (await target.store.claim(claimRequest())).map(({ job }) => job.id),
      [id],
      'ids claimed elsewhere',
    );
    const { store } = await opened.reopen();
    await rejects(() => store.enqueue([jobRequest()]), 'store_sealed', 'enqueue after the restart');
  },

  'a closed store answers nothing but that it is closed, and closing twice is harmless': async (opened) => {
    const { store } = opened;
    const job = await runningJob(store);
    await store.close();
    const calls = { ...changes(store, job), ...reads(store, job.id) };
    for (const [verb, call] of Object.entries(calls)) {
      await rejects(call, 'store_closed', `${verb} on a closed store`);
    }
    await store.close();
  },

  'bad input is named before the seal is, and changes nothing': async ({ store }) => {
    await store.seal('elsewhere', OPERATOR);
    await rejects(() => store.enqueue([jobRequest({ priority: 2_000 })]), 'invalid_input', 'a bad job');
  },

  'a seal that names no place throws, and the store works on': async ({ store }) => {
    await rejects(() => store.seal('', OPERATOR), 'invalid_input', 'a seal to nowhere');
    await rejects(() => store.seal('elsewhere', { actor: '' }), 'invalid_input', 'a seal by nobody');
    await enqueueOne(store);
  },

  'migrating is safe to repeat and loses nothing': async ({ store }) => {
    const { id } = await enqueueOne(store);
    const before = await viewOf(store, id);
    await store.migrate();
    await Promise.all([store.migrate(), store.migrate()]);
    same(await viewOf(store, id), before, 'the job');
  },

  'a store says what it is capable of, and its clock has a name': async ({ store }) => {
    const { durable, shared, clock } = store.capabilities;
    same([typeof durable, typeof shared], ['boolean', 'boolean'], 'durable and shared');
    check(clock === 'unix' || clock === 'simulated', `name of the clock: ${clock}`);
  },
});
