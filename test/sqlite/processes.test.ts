/** Real processes on one file, killed at random moments: nothing lost, nothing doubled, every interrupted job UNCERTAIN. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, inject, test } from 'vitest';
import { STATE } from '../../src/core/index.ts';
import { verifyJob } from '../../src/evidence/index.ts';
import type { JobView, Store } from '../../src/store/store.ts';
import { freshPath, openAt } from './open-file.ts';

const KILLS = Number(process.env['CUSTODY_KILLS'] ?? 15);
const WORKERS = 4;
const ACCOUNTS = 20;
const KIND = 'charge';

/** A worker process whose lines can be waited for. */
class Worker {
  readonly process: ChildProcess;
  readonly exited: Promise<number | null>;
  readonly #listeners = new Set<(line: string) => void>();

  constructor(database: string, book: string, name: string) {
    const script = join(import.meta.dirname, 'worker-process.mjs');
    this.process = spawn(process.execPath, [script, inject('built'), database, book, name], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.exited = new Promise((resolve) => {
      this.process.once('exit', (code) => resolve(code));
    });
    if (this.process.stdout === null) throw new Error('no output to listen to');
    createInterface({ input: this.process.stdout }).on('line', (line) => {
      for (const listener of this.#listeners) listener(line);
    });
  }

  /** Resolves at the `count`th line that `matches`, or when the process has gone. */
  async lines(matches: (line: string) => boolean, count = 1): Promise<void> {
    let left = count;
    let listener: (line: string) => void = () => undefined;
    const heard = new Promise<void>((resolve) => {
      listener = (line) => {
        if (matches(line)) left -= 1;
        if (left <= 0) resolve();
      };
    });
    this.#listeners.add(listener);
    await Promise.race([heard, this.exited]);
    this.#listeners.delete(listener);
  }
}

/** Ids in the provider's book, one line per charge, in order. */
function booked(book: string): number[] {
  if (!existsSync(book)) return [];
  return readFileSync(book, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => Number(line.split(' ')[0]));
}

async function all(store: Store): Promise<readonly JobView[]> {
  const jobs: JobView[] = [];
  for (let afterId: number | null = 0; afterId !== null; ) {
    const found: Awaited<ReturnType<Store['find']>> = await store.find({
      afterId,
      limit: 1000,
      internal: true,
    });
    jobs.push(...found.jobs);
    afterId = found.nextAfterId;
  }
  return jobs;
}

/** A person with the provider's book decides what nobody could know. */
async function decideFromBook(store: Store, book: string): Promise<number> {
  const charged = new Set(booked(book));
  const { jobs } = await store.find({ states: [STATE.UNCERTAIN], limit: 1000 });
  for (const { job } of jobs) {
    const decision = charged.has(job.id) ? 'succeeded' : 'failed';
    const by = { actor: 'book-keeper', reason: 'looked into the book' };
    await store.reconcile({ id: job.id, token: job.token, decision, by });
  }
  return jobs.length;
}

test(`workers killed at ${KILLS} random moments lose nothing, double nothing, and leave only what nobody can know UNCERTAIN`, async () => {
  const database = freshPath();
  const book = `${database}.book`;
  const store = await openAt(database, { clock: () => Date.now(), clockName: 'unix' });
  const count = 40 + KILLS * 8;
  await store.enqueue(
    Array.from({ length: count }, (_, n) => ({
      kind: KIND,
      revision: 1,
      payload: { account: `account-${n % ACCOUNTS}` },
      idempotent: false,
      orderingKey: `account-${n % ACCOUNTS}`,
    })),
  );
  const workers = Array.from({ length: WORKERS }, (_, n) => new Worker(database, book, `w${n}`));
  for (let kill = 0; kill < KILLS; kill++) {
    const slot = kill % WORKERS;
    const victim = workers[slot];
    // Some moment between two lines it says: before the charge, between charge and settlement, or after.
    const lines = 1 + ((kill * 7) % 11);
    await victim?.lines((line) => line !== 'idle', lines);
    victim?.process.kill('SIGKILL');
    await victim?.exited;
    await decideFromBook(store, book);
    workers[slot] = new Worker(database, book, `w${slot}`);
  }
  for (;;) {
    await workers[0]?.lines((line) => line.startsWith('settled') || line === 'idle', 5);
    await store.lapse(500);
    await decideFromBook(store, book);
    const { states } = await store.counts();
    const open = [STATE.PENDING, STATE.SCHEDULED, STATE.LEASED, STATE.RUNNING, STATE.UNCERTAIN];
    if (open.every((state) => (states[state] ?? 0) === 0)) break;
  }
  for (const worker of workers) worker.process.kill('SIGTERM');
  expect(await Promise.all(workers.map((worker) => worker.exited))).toEqual(workers.map(() => 0));

  const jobs = await all(store);
  const charges = booked(book);
  expect(jobs).toHaveLength(count);
  expect(new Set(charges).size, 'no charge stands in the book twice').toBe(charges.length);
  const succeeded = jobs.filter(({ job }) => job.state === STATE.SUCCEEDED).map(({ job }) => job.id);
  expect([...succeeded].sort((a, b) => a - b)).toEqual([...charges].sort((a, b) => a - b));
  expect(
    jobs.every(({ job }) => job.state === STATE.SUCCEEDED || job.state === STATE.PERMANENT_FAILURE),
  ).toBe(true);
  for (const account of Array.from({ length: ACCOUNTS }, (_, n) => n)) {
    const ofAccount = charges.filter((id) => (id - 1) % ACCOUNTS === account);
    expect(ofAccount, 'order kept per account').toEqual([...ofAccount].sort((a, b) => a - b));
  }
  for (const { job } of jobs) {
    const evidence = await store.evidence(job.id);
    expect(evidence === null ? null : verifyJob(evidence).faults).toEqual([]);
    const begins = (evidence?.chain.entries.length ?? 0) > 0 ? job.attempt : 0;
    expect(begins, 'a job that is not idempotent begins once').toBeLessThanOrEqual(1);
  }
}, 300_000);

test('a worker stopped past its lease changes nothing when it goes on', async () => {
  const database = freshPath();
  const book = `${database}.book`;
  const store = await openAt(database, { clock: () => Date.now(), clockName: 'unix' });
  await store.enqueue([{ kind: KIND, revision: 1, payload: { account: 'alice' }, idempotent: false }]);
  const zombie = new Worker(database, book, 'zombie');
  const begun = zombie.lines((line) => line.startsWith('begun'));
  await begun;
  zombie.process.kill('SIGSTOP');
  let lost = await store.get(1);
  while (lost?.job.state === STATE.RUNNING || lost?.job.state === STATE.PENDING) {
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
    await store.lapse(10);
    lost = await store.get(1);
  }
  if (lost?.job.state === STATE.SUCCEEDED) {
    // It was quicker than the signal: then there is no zombie to speak of.
    zombie.process.kill('SIGKILL');
    await zombie.exited;
    return;
  }
  expect(lost?.job.state).toBe(STATE.UNCERTAIN);
  const by = { actor: 'dana', reason: 'the provider knows of no charge' };
  await store.reconcile({ id: 1, token: lost?.job.token ?? 0, decision: 'failed', by });
  const refused = zombie.lines((line) => line.startsWith('settled 1'));
  zombie.process.kill('SIGCONT');
  await refused;
  const decided = await store.get(1);
  expect(decided?.job.state).toBe(STATE.PERMANENT_FAILURE);
  expect(decided?.testimony).toMatchObject([{ outcome: 'succeeded', chained: false }]);
  expect(decided?.contradictions).toBe(1);
  zombie.process.kill('SIGTERM');
  await zombie.exited;
}, 60_000);
