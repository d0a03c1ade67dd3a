/** A worker under failure: each attempt is settled once, by what the handler said or by what its silence means. */
import { describe, expect, test } from 'vitest';
import { STATE } from '../../src/core/index.ts';
import { defineJob } from '../../src/runtime/definition.ts';
import { outcome } from '../../src/runtime/outcome.ts';
import { gate, numbered, open } from './fixtures.ts';

const base = { kind: 'note', revision: 1, payload: numbered } as const;

describe('a handler', () => {
  test('that returns succeeds with its result, and a waiter gets it', async () => {
    const { custody, time } = await open();
    const double = defineJob({ ...base, idempotent: true, run: (job) => job.payload.n * 2 });
    const { id } = await custody.enqueue(double, { n: 21 });
    const result = custody.waitFor(id);
    custody.work([double]);
    await time.advance(10);
    expect(await result).toBe(42);
  });

  test('that throws anything at all leaves a readable reason, and the worker goes on', async () => {
    const cyclic: Record<string, unknown> = {};
    cyclic['self'] = cyclic;
    const hostile = new Error('x');
    Object.defineProperty(hostile, 'message', {
      get: () => {
        throw new Error('no');
      },
    });
    const thrown: unknown[] = [
      null,
      undefined,
      0,
      '',
      'text',
      Symbol('s'),
      {},
      cyclic,
      hostile,
      new AggregateError([], 'many'),
    ];
    const { custody, time } = await open();
    const failing = defineJob({
      ...base,
      idempotent: true,
      maxAttempts: 1,
      run: (job) => {
        throw thrown[job.payload.n];
      },
    });
    for (const n of thrown.keys()) await custody.enqueue(failing, { n });
    const worker = custody.work([failing]);
    await time.advance(10);
    const { jobs } = await custody.store.find({});
    expect(jobs.map(({ job }) => job.state)).toEqual(thrown.map(() => STATE.DEAD_LETTERED));
    expect(jobs.every(({ report }) => (report ?? '').length > 0)).toBe(true);
    expect(worker.stats()).toMatchObject({ running: 0, settled: thrown.length });
  });

  test('that is not idempotent and throws leaves UNCERTAIN, unless its definition says what a throw proves', async () => {
    const { custody, time } = await open();
    const boom = (): never => {
      throw new Error('boom');
    };
    const doubtful = defineJob({ ...base, kind: 'doubtful', idempotent: false, run: boom });
    const definite = defineJob({
      ...base,
      kind: 'definite',
      idempotent: false,
      onThrow: 'permanent',
      run: boom,
    });
    await custody.enqueue(doubtful, { n: 1 });
    await custody.enqueue(definite, { n: 1 });
    custody.work([doubtful, definite]);
    await time.advance(10);
    const { jobs } = await custody.store.find({});
    expect(jobs.map(({ job }) => job.state)).toEqual([STATE.UNCERTAIN, STATE.PERMANENT_FAILURE]);
  });

  test('whose result does not survive JSON has succeeded, with what was left out and where', async () => {
    const { custody, time } = await open();
    const strange = defineJob({ ...base, idempotent: false, run: () => ({ list: [1n] }) });
    const { id } = await custody.enqueue(strange, { n: 1 });
    custody.work([strange]);
    await time.advance(10);
    expect(await custody.waitFor(id)).toMatchObject({ resultOmitted: '$.list[0]' });
  });

  test('that names an outcome, returned or thrown, is taken at its word', async () => {
    const { custody, time } = await open();
    const named = [
      outcome.permanent('no'),
      outcome.uncertain('perhaps'),
      outcome.retryable('later', { delayMs: 5_000 }),
      outcome.snoozed(2_000_000),
    ];
    const saying = defineJob({
      ...base,
      idempotent: false,
      run: (job) => {
        const one = named[job.payload.n % 4] ?? outcome.permanent('');
        if (job.payload.n >= 4) throw one;
        return one;
      },
    });
    for (let n = 0; n < 8; n++) await custody.enqueue(saying, { n });
    custody.work([saying]);
    await time.advance(10);
    const states = [STATE.PERMANENT_FAILURE, STATE.UNCERTAIN, STATE.SCHEDULED, STATE.SCHEDULED];
    const { jobs } = await custody.store.find({});
    expect(jobs.map(({ job }) => job.state)).toEqual([...states, ...states]);
  });

  test('that does not answer within its timeout is told to stop and settled without waiting for it', async () => {
    const { custody, time } = await open();
    const reasons: unknown[] = [];
    const deaf = gate();
    const slow = defineJob({
      ...base,
      idempotent: false,
      timeout: '1s',
      run: async (_job, { signal }) => {
        signal.addEventListener('abort', () => reasons.push(signal.reason));
        await deaf.promise;
        return 'done after all';
      },
    });
    const { id } = await custody.enqueue(slow, { n: 1 });
    const worker = custody.work([slow]);
    await time.advance(1_000);
    expect(reasons).toMatchObject([{ reason: 'timeout' }]);
    expect((await custody.store.get(id))?.job.state).toBe(STATE.UNCERTAIN);
    expect(worker.stats().zombies).toBe(1);
    // Its own later word is the best there is about the attempt.
    deaf.open();
    await time.advance(10);
    expect((await custody.store.get(id))?.job).toMatchObject({
      state: STATE.SUCCEEDED,
      cause: 'late_report',
    });
    expect(worker.stats().zombies).toBe(0);
  });

  test('is told within a second that its job is to be cancelled, however long the lease', async () => {
    const { custody, time } = await open();
    const polite = defineJob({
      ...base,
      idempotent: true,
      run: (_job, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    });
    const { id } = await custody.enqueue(polite, { n: 1 });
    custody.work([polite], { leaseMs: 600_000 });
    await time.advance(10);
    await custody.store.cancel({ id, by: { actor: 'olga', reason: 'not needed' } });
    await time.advance(1_100);
    expect((await custody.store.get(id))?.job.state).toBe(STATE.CANCELLED);
  });

  test('keeps its lease for as long as it runs', async () => {
    const { custody, time } = await open();
    const work = gate();
    const long = defineJob({ ...base, idempotent: false, run: () => work.promise });
    const { id } = await custody.enqueue(long, { n: 1 });
    custody.work([long], { leaseMs: 1_000 });
    await time.advance(20_000);
    expect((await custody.store.get(id))?.job).toMatchObject({ state: STATE.RUNNING, delivery: 1 });
    work.open();
    await time.advance(10);
    expect((await custody.store.get(id))?.job.state).toBe(STATE.SUCCEEDED);
  });
});

describe('a payload', () => {
  test('that its schema refuses is not enqueued, and the path to the culprit is named', async () => {
    const { custody } = await open();
    const note = defineJob({ ...base, idempotent: true, run: () => null });
    await expect(custody.enqueue(note, { n: 1.5 })).rejects.toMatchObject({
      code: 'payload_refused',
      path: '$.n',
    });
    expect((await custody.store.counts()).states).toEqual({});
  });

  test('of an older revision is upgraded, and one that no upgrade reaches waits and is listed as stranded', async () => {
    const { custody, time } = await open();
    const text: typeof numbered = {
      '~standard': { ...numbered['~standard'], validate: (value) => ({ value: value as { n: number } }) },
    };
    const first = defineJob({ ...base, payload: text, idempotent: true, run: () => null });
    const { id } = await custody.enqueue(first, { n: '7' } as unknown as { n: number });
    const { id: lost } = await custody.enqueue(first, { n: 'seven' } as unknown as { n: number });
    const seen: unknown[] = [];
    const second = defineJob({
      ...base,
      revision: 2,
      idempotent: true,
      upgrade: { 1: (old) => ({ n: Number((old as { n: string }).n) }) },
      run: (job) => {
        seen.push(job.payload);
      },
    });
    custody.work([second]);
    await time.advance(10);
    expect(seen).toEqual([{ n: 7 }]);
    expect((await custody.store.get(id))?.job.state).toBe(STATE.SUCCEEDED);
    expect(await custody.store.get(lost)).toMatchObject({
      job: { state: STATE.SCHEDULED },
      needsYou: 'stranded',
    });
  });
});

describe('a worker', () => {
  test('refuses to start when a definition changed without a new revision', async () => {
    const { custody, time } = await open();
    const versioned = (schemaVersion: string) =>
      defineJob({ ...base, schemaVersion, idempotent: true, run: () => null });
    const first = custody.work([versioned('one')]);
    await time.settle();
    await first.started;
    await expect(custody.work([versioned('two')]).started).rejects.toMatchObject({
      code: 'definition_changed',
    });
  });

  test('that stops waits for its handlers, then tells the others, and holds nothing when it is done', async () => {
    const { custody, time } = await open();
    const quick = gate();
    const aborted: unknown[] = [];
    const handler = defineJob({
      ...base,
      idempotent: true,
      run: async (job, { signal }) => {
        if (job.payload.n === 1) return quick.promise;
        signal.addEventListener('abort', () => aborted.push(signal.reason));
        return new Promise(() => undefined);
      },
    });
    const { id: first } = await custody.enqueue(handler, { n: 1 });
    const { id: second } = await custody.enqueue(handler, { n: 2 });
    const worker = custody.work([handler], { leaseMs: 1_000 });
    await time.advance(10);
    const stopped = worker.stop({ graceMs: 5_000 });
    quick.open();
    await time.advance(4_000);
    expect((await custody.store.get(first))?.job.state).toBe(STATE.SUCCEEDED);
    expect((await custody.store.get(second))?.job).toMatchObject({ state: STATE.RUNNING, delivery: 1 });
    await time.advance(1_100);
    await stopped;
    expect(aborted).toMatchObject([{ reason: 'shutdown' }]);
    expect((await custody.store.get(second))?.job).toMatchObject({
      state: STATE.PENDING,
      attempt: 0,
      lease: null,
    });
  });

  test('that has stopped sets no timer any more, whatever was under way', async () => {
    const { custody, time, logged } = await open();
    const handler = defineJob({ ...base, idempotent: true, run: () => null });
    await custody.enqueue(handler, { n: 1 });
    const worker = custody.work([handler], { leaseMs: 300 });
    await time.advance(99);
    const stopped = worker.stop();
    await time.advance(10_000);
    await stopped;
    await custody.store.close();
    await time.advance(60_000);
    expect(logged.filter(({ level }) => level !== 'info')).toEqual([]);
  });

  test('counts no zombie when every handler ended by itself', async () => {
    const { custody, time } = await open();
    const handler = defineJob({ ...base, idempotent: true, run: () => null });
    for (let n = 0; n < 20; n++) await custody.enqueue(handler, { n });
    const worker = custody.work([handler]);
    await time.advance(100);
    expect(worker.stats()).toMatchObject({ settled: 20, zombies: 0, running: 0 });
  });

  test('that finds its lease lost tells the handler, and its late word decides what nobody could know', async () => {
    const { custody, time } = await open();
    const work = gate();
    const reasons: unknown[] = [];
    const handler = defineJob({
      ...base,
      idempotent: false,
      run: async (_job, { signal }) => {
        signal.addEventListener('abort', () => reasons.push(signal.reason));
        await work.promise;
        return 'done';
      },
    });
    const { id } = await custody.enqueue(handler, { n: 1 });
    custody.work([handler], { leaseMs: 1_000 });
    await time.advance(10);
    // As after a sleep of the machine: the wall clock went on without the timers.
    time.setWall(time.now() + 10_000);
    await time.advance(400);
    expect(reasons).toMatchObject([{ reason: 'lease_lost' }]);
    expect((await custody.store.get(id))?.job.state).toBe(STATE.UNCERTAIN);
    work.open();
    await time.advance(10);
    expect((await custody.store.get(id))?.job).toMatchObject({
      state: STATE.SUCCEEDED,
      cause: 'late_report',
    });
  });
});

describe('reconcilers and compensations', () => {
  test('a reconciler is asked one wait after the loss, and its answer decides', async () => {
    const { custody, time } = await open();
    const asked: number[] = [];
    const charge = defineJob({
      ...base,
      idempotent: false,
      reconcileAfter: '10s',
      run: () => outcome.uncertain('timeout'),
      reconcile: (job, context) => {
        asked.push(job.payload.n, context.lostToken);
        return 'succeeded';
      },
    });
    const { id } = await custody.enqueue(charge, { n: 7 });
    custody.work([charge]);
    await time.advance(9_000);
    expect(asked).toEqual([]);
    await time.advance(3_000);
    expect(asked).toEqual([7, 1]);
    expect((await custody.store.get(id))?.job).toMatchObject({ state: STATE.SUCCEEDED, cause: 'reconciled' });
    expect((await custody.verify(id))?.ok).toBe(true);
  });

  test('a reconciler and a compensation are given the keys of the lost job, or the other side would be asked about nothing', async () => {
    const { custody, time } = await open();
    const keys: string[] = [];
    const charge = defineJob({
      ...base,
      idempotent: false,
      reconcileAfter: 0,
      run: (_job, context) => {
        keys.push(context.effectKey('charge'));
        return outcome.uncertain('timeout');
      },
      reconcile: (job, context) => {
        keys.push(context.effectKey('charge'));
        return job.id === 1 ? 'failed' : 'unknown';
      },
      compensate: (_job, context) => {
        keys.push(context.effectKey('charge'));
      },
    });
    await custody.enqueue(charge, { n: 7 });
    custody.work([charge], { pollMs: 10 });
    await time.advance(1_000);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
  });

  test('a reconciler that never knows leaves the job to a person', async () => {
    const { custody, time } = await open();
    let asked = 0;
    const charge = defineJob({
      ...base,
      idempotent: false,
      backoff: { base: 1, max: 1 },
      reconcileAfter: 0,
      run: () => outcome.uncertain('timeout'),
      reconcile: () => {
        asked += 1;
        return 'unknown';
      },
    });
    const { id } = await custody.enqueue(charge, { n: 7 });
    custody.work([charge], { pollMs: 10 });
    await time.advance(2_000);
    expect(asked).toBe(20);
    expect(await custody.store.get(id)).toMatchObject({
      job: { state: STATE.UNCERTAIN },
      needsYou: 'uncertain',
    });
  });

  test('a job that ran and failed for good is compensated', async () => {
    const { custody, time } = await open();
    const undone: string[] = [];
    const charge = defineJob({
      ...base,
      idempotent: false,
      run: () => outcome.permanent('card closed'),
      compensate: (job, context) => {
        undone.push(`${job.payload.n} ${context.endedAs}`);
      },
    });
    const { id } = await custody.enqueue(charge, { n: 7 });
    custody.work([charge]);
    await time.advance(10);
    expect(undone).toEqual(['7 PERMANENT_FAILURE']);
    expect((await custody.store.get(id))?.needsYou).toBeNull();
  });
});

describe('effects', () => {
  test('a committed effect is not applied again when its job is delivered again', async () => {
    const { custody, time } = await open();
    let calls = 0;
    const deposit = defineJob({
      ...base,
      idempotent: true,
      run: async (job, context) => {
        const balance = await context.commit('deposit', job.payload, (tx) => {
          tx.application['alice'] = ((tx.application['alice'] as number | undefined) ?? 0) + job.payload.n;
          return tx.application['alice'];
        });
        calls += 1;
        if (calls === 1) throw new Error('lost before it could say so');
        return balance;
      },
    });
    const { id } = await custody.enqueue(deposit, { n: 7 });
    custody.work([deposit]);
    await time.advance(10_000);
    expect(calls).toBe(2);
    expect(await custody.waitFor(id)).toBe(7);
  });

  test('a step that was begun and never finished is not run again: the attempt says that it is uncertain', async () => {
    const { custody, time } = await open();
    let called = 0;
    const mail = defineJob({
      ...base,
      idempotent: true,
      run: async (_job, context) =>
        context.step('send', { idempotent: false }, async () => {
          called += 1;
          throw new Error('no answer');
        }),
    });
    const { id } = await custody.enqueue(mail, { n: 1 });
    custody.work([mail]);
    await time.advance(60_000);
    expect(called).toBe(1);
    expect((await custody.store.get(id))?.job.state).toBe(STATE.UNCERTAIN);
  });
});
