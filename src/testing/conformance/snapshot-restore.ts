/** Snapshot and restore: a copy of everything that shares nothing, and that is refused whole when any of it was altered. */
import { type Job, limits, STATE } from '../../core/index.ts';
import type { Store } from '../../store/store.ts';
import {
  addCents,
  balanceOf,
  claimIds,
  claimOne,
  enqueueOne,
  failedJob,
  jobOf,
  jobRequest,
  OPERATOR,
  runningJob,
  settleOne,
  succeed,
  uncertainJob,
  unique,
  viewOf,
} from './build.ts';
import { accepted, check, only, present, rejects, same } from './check.ts';
import { type ConformanceCase, casesOf, type OpenedStore } from './harness.ts';

const RESTART = { as: 'restart', by: OPERATOR } as const;
const COPY = { as: 'copy', by: OPERATOR } as const;
const KEY = 'invoice-17';

/** A store with something in every table; the running job is what is still held. */
async function filled(opened: OpenedStore): Promise<Job> {
  const { store } = opened;
  await store.configure('default', { maxUnresolved: 50 }, OPERATOR);
  await store.pause('paused', OPERATOR);
  const definition = { kind: 'transfer', revision: 1, schemaDigest: 'a'.repeat(64), normalisation: 'n' };
  await store.register({ worker: 'w', definitions: [definition] });
  await uncertainJob(opened, { reconciles: true, acceptLateReports: false });
  await succeed(store, await runningJob(store, { idempotencyKey: KEY }), '{"receipt":1}');
  const failed = await failedJob(store);
  check((await store.redrive({ id: failed.id, by: OPERATOR })).ok, 'the redrive is accepted');
  accepted(await settleOne(store, (await claimOne(store)).job, 'retryable', { report: 'down' }), 'the retry');
  await enqueueOne(store, { orderingKey: 'alice', delayMs: 90_000 });
  const job = await runningJob(store, { queue: 'busy', orderingKey: 'bob' });
  await addCents(opened, job, 'charge', 7);
  await store.transact({ id: job.id, token: job.token }, (tx) =>
    tx.beginStep('wire', { descriptor: { to: 'bank' }, idempotent: true }),
  );
  return jobOf(store, job.id);
}

/** All a snapshot must carry; workers are not part of it, since the id of a worker is new at every start. */
async function everything(store: Store): Promise<unknown> {
  const { jobs } = await store.find({ internal: true, limit: 1_000 });
  const evidence = await Promise.all(jobs.map(({ job }) => store.evidence(job.id)));
  const { states, needsYou, contradictions } = await store.counts();
  return [jobs, evidence, await store.queues(), await store.lanes(100), states, needsYou, contradictions];
}

type Plain = Record<string, unknown>;

/** A snapshot as JSON would bring it from a file, to be altered. */
function plain(snapshot: unknown): Plain {
  return JSON.parse(JSON.stringify(snapshot)) as Plain;
}

/** The record at a path of names and places. */
function at(value: unknown, ...path: readonly (string | number)[]): Plain {
  let found: unknown = value;
  for (const step of path) found = (found as Plain)[step];
  check(typeof found === 'object' && found !== null, `the snapshot has ${path.join('.')}`);
  return found as Plain;
}

const ALTERATIONS: Readonly<Record<string, (snapshot: Plain) => void>> = {
  'another format': (s) => Object.assign(s, { format: 'custody-snapshot-v0' }),
  'a field nobody knows': (s) => Object.assign(s, { extra: 1 }),
  'a field that is missing': (s) => Reflect.deleteProperty(s, 'effects'),
  'a state': (s) => Object.assign(at(s, 'jobs', 1, 'job'), { state: STATE.PENDING }),
  'a counter of a job': (s) => Object.assign(at(s, 'jobs', 0, 'job'), { attempt: 0 }),
  'a submission': (s) => Object.assign(at(s, 'jobs', 0, 'job', 'submission'), { idempotent: true }),
  'a payload': (s) => Object.assign(at(s, 'jobs', 0), { payload: '{"cents":700}' }),
  'a root': (s) => Object.assign(at(s, 'jobs', 0), { root: '0'.repeat(64) }),
  'a history cut short': (s) => Object.assign(at(s, 'jobs', 0), { ledger: '' }),
  'a history of another job': (s) => Object.assign(at(s, 'jobs', 0), { ledger: at(s, 'jobs', 1)['ledger'] }),
  'a result': (s) => Object.assign(at(s, 'jobs', 2), { texts: ['{"receipt":2}'] }),
  'an id counter that would give an id again': (s) => Object.assign(at(s, 'counters'), { nextId: 1 }),
  'a token counter that would give a token again': (s) => Object.assign(at(s, 'counters'), { nextToken: 1 }),
  'a clock before what was recorded': (s) => Object.assign(at(s, 'counters'), { lastTick: 0 }),
  'a job that stands twice': (s) => (s['jobs'] as unknown[]).push(at(s, 'jobs', 0)),
  'a key that was taken away': (s) => (s['keys'] as unknown[]).splice(0, 1),
  'a key with other content': (s) => Object.assign(at(s, 'keys', 0), { descriptor: 'f'.repeat(64) }),
  'a link to a job that was not made from it': (s) => Object.assign(at(s, 'jobs', 0), { redrivenTo: 2 }),
  'an effect that was taken away': (s) => Object.assign(s, { effects: [] }),
  'an effect with another result': (s) => Object.assign(at(s, 'effects', 0), { result: '{"added":700}' }),
  'an effect nobody committed': (s) =>
    (s['effects'] as unknown[]).push({ ...at(s, 'effects', 0), key: 'never', token: 1 }),
  'an application state that is no object': (s) => Object.assign(s, { application: [] }),
};

export const snapshotCases: readonly ConformanceCase[] = casesOf('snapshot and restore', {
  'a restart has everything, and every counter goes on where it was': async (opened) => {
    const held = await filled(opened);
    const before = await everything(opened.store);
    const acts = await opened.store.acts();
    const reopened = await opened.reopen();
    const { store } = reopened;
    same(await everything(store), before, 'everything');
    same((await store.acts()).slice(0, acts.length), acts, 'acts');
    await succeed(store, held);
    same(await addedBefore(store, KEY), 'duplicate', 'a key from before the restart');
    const next = (await claimNext(store)).job;
    check(next.id > held.id && next.token > held.token, 'the next id and token are above all before');
    check(next.id < limits.restoreGap, 'a restart leaves no gap');
    same(await balanceOf(reopened), 7, 'balance');
  },

  'a snapshot restored as a copy has everything, and starts ids and tokens far above all given out': async (
    opened,
  ) => {
    const held = await filled(opened);
    const before = await everything(opened.store);
    const target = await opened.fresh();
    await target.store.restore(await opened.store.snapshot(), COPY);
    same(await everything(target.store), before, 'everything');
    const next = (await claimNext(target.store)).job;
    check(next.id >= held.id + limits.restoreGap, `id ${next.id} is a gap above ${held.id}`);
    check(next.token >= held.token + limits.restoreGap, `token ${next.token} is a gap above ${held.token}`);
    same(await balanceOf(target), 7, 'balance of the copy');
  },

  'a copy starts above its target too, where that has given out more': async (opened) => {
    const target = await opened.fresh();
    let last: Job = await runningJob(target.store);
    for (let job = 0; job < 5; job += 1) last = await runningJob(target.store);
    for (const { job } of (await target.store.find({})).jobs) await succeed(target.store, job);
    await target.store.prune({ by: OPERATOR, succeededAfterMs: 0 });
    await enqueueOne(opened.store);
    await target.store.restore(await opened.store.snapshot(), COPY);
    const next = (await claimNext(target.store)).job;
    check(next.id >= last.id + limits.restoreGap, `id ${next.id} is a gap above ${last.id}`);
    check(next.token >= last.token + limits.restoreGap, `token ${next.token} is a gap above ${last.token}`);
  },

  'restoring a copy is an act, with who and why': async (opened) => {
    await filled(opened);
    const { store } = await opened.fresh();
    await store.restore(await opened.store.snapshot(), {
      as: 'copy',
      by: { actor: 'olga', reason: 'moved' },
    });
    const act = present((await store.acts()).at(-1), 'act');
    same([act.act, act.actor, act.reason], ['restore', 'olga', 'moved'], 'act');
  },

  'a snapshot does not follow the store it was taken from': async (opened) => {
    const held = await filled(opened);
    const snapshot = await opened.store.snapshot();
    const saved = plain(snapshot);
    await succeed(opened.store, held);
    await enqueueOne(opened.store);
    same(plain(snapshot), saved, 'the snapshot');
  },

  'editing a snapshot after it was restored changes nothing in the store': async (opened) => {
    await filled(opened);
    const snapshot = plain(await opened.store.snapshot());
    const target = await opened.fresh();
    await target.store.restore(snapshot, RESTART);
    const before = structuredClone(await everything(target.store));
    Object.assign(at(snapshot, 'jobs', 0, 'job'), { state: STATE.SUCCEEDED, token: 999 });
    Object.assign(at(snapshot, 'jobs', 0, 'job', 'submission'), { queue: 'stolen' });
    Object.assign(at(snapshot, 'application'), { balance: 1_000_000 });
    Object.assign(at(snapshot, 'effects', 0), { result: 'null' });
    Object.assign(at(snapshot, 'counters'), { nextToken: 1 });
    same(await everything(target.store), before, 'everything');
    same(await balanceOf(target), 7, 'balance');
  },

  'a snapshot survives JSON, and its second restore equals the first': async (opened) => {
    await filled(opened);
    const snapshot = plain(await opened.store.snapshot());
    for (let time = 0; time < 2; time += 1) {
      const { store } = await opened.fresh();
      await store.restore(snapshot, RESTART);
      same(plain(await store.snapshot()), snapshot, `snapshot of restore ${time}`);
    }
  },

  'an altered snapshot is refused whole, whatever was altered, and the store stays empty and usable': async (
    opened,
  ) => {
    await filled(opened);
    const snapshot = plain(await opened.store.snapshot());
    const { store } = await opened.fresh();
    for (const [what, alter] of Object.entries(ALTERATIONS)) {
      const altered = structuredClone(snapshot);
      alter(altered);
      await rejects(() => store.restore(altered, COPY), 'snapshot_refused', `restoring with ${what} altered`);
      same((await store.find({ internal: true })).jobs, [], `jobs after ${what}`);
    }
    await store.restore(snapshot, COPY);
    same((await store.find({})).jobs.length > 0, true, 'the unaltered snapshot is restored');
  },

  'what is no snapshot at all is refused': async ({ store }) => {
    for (const value of [
      null,
      undefined,
      7,
      'snapshot',
      [],
      {},
      new Map(),
      { format: 'custody-snapshot-v1' },
    ]) {
      await rejects(() => store.restore(value, RESTART), 'snapshot_refused', `restoring ${typeof value}`);
    }
    await enqueueOne(store);
  },

  'a store that holds jobs is not overwritten': async (opened) => {
    await filled(opened);
    const target = await opened.fresh();
    const { id } = await enqueueOne(target.store);
    const before = await viewOf(target.store, id);
    const snapshot = await opened.store.snapshot();
    await rejects(() => target.store.restore(snapshot, COPY), 'snapshot_refused', 'restoring over jobs');
    same(await viewOf(target.store, id), before, 'the job that was there');
    same((await target.store.find({ internal: true })).jobs.length, 1, 'jobs stored');
  },

  'an empty store can be moved': async (opened) => {
    const { store } = await opened.fresh();
    await store.restore(await opened.store.snapshot(), COPY);
    const { id } = await enqueueOne(store);
    check(id > limits.restoreGap, `id ${id} is above the gap`);
  },

  'a lease that was current is current after a restart, and runs out at the same tick': async (opened) => {
    const held = await filled(opened);
    const { store } = await opened.reopen();
    const expiresAt = present(held.lease, 'lease').expiresAt;
    opened.clock.set(expiresAt - 1);
    same(await claimIds(store, { queues: ['busy'] }), [], 'ids claimed before');
    opened.clock.set(expiresAt);
    same(await claimIds(store, { queues: ['busy'] }), [held.id], 'ids claimed at its end');
  },
});

async function addedBefore(store: Store, idempotencyKey: string): Promise<string> {
  return only(await store.enqueue([jobRequest({ idempotencyKey })]), 'verdicts').status;
}

/** A new job with the next id, claimed under the next token. */
async function claimNext(store: Store): ReturnType<typeof claimOne> {
  const queue = unique('next');
  await enqueueOne(store, { queue });
  return claimOne(store, { queues: [queue] });
}
