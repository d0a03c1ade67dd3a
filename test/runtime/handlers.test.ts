/** What handlers do that nobody planned for: each ends in a documented state with a readable reason, and the worker goes on. */
import { describe, expect, test } from 'vitest';
import { STATE } from '../../src/core/index.ts';
import { defineJob } from '../../src/runtime/definition.ts';
import { outcome } from '../../src/runtime/outcome.ts';
import { reasonOf } from '../../src/runtime/reason.ts';
import type { StandardSchema } from '../../src/runtime/standard-schema.ts';
import { gate, numbered, open } from './fixtures.ts';

const base = { kind: 'note', revision: 1, payload: numbered } as const;
const anything: StandardSchema = {
  '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) },
};

describe('hooks', () => {
  test('see the effect key that run gave to the provider', async () => {
    const { custody, time } = await open();
    const keys: string[] = [];
    const charge = defineJob({
      ...base,
      idempotent: false,
      reconcileAfter: 0,
      run: (_job, { effectKey }) => {
        keys.push(effectKey('charge'));
        return outcome.uncertain('no answer');
      },
      reconcile: (_job, { effectKey }) => {
        keys.push(effectKey('charge'));
        return 'failed';
      },
      compensate: (_job, { effectKey }) => {
        keys.push(effectKey('charge'));
      },
    });
    await custody.enqueue(charge, { n: 1 });
    custody.work([charge]);
    await time.advance(5_000);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
  });

  test('see the same effect key over a retry', async () => {
    const { custody, time } = await open();
    const keys: string[] = [];
    const charge = defineJob({
      ...base,
      idempotent: true,
      run: (_job, { effectKey, attempt }) => {
        keys.push(effectKey('charge'));
        if (attempt === 1) throw new Error('again');
      },
    });
    await custody.enqueue(charge, { n: 1 });
    custody.work([charge]);
    await time.advance(10_000);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
  });
});

describe('results that do not survive JSON', () => {
  const strange: Readonly<Record<string, () => unknown>> = {
    'a cycle': () => {
      const cyclic: Record<string, unknown> = {};
      cyclic['self'] = cyclic;
      return cyclic;
    },
    'a BigInt': () => 1n,
    'a text above the bound': () => 'x'.repeat(2_000_000),
    'a function': () => () => undefined,
    'a Map': () => new Map(),
    'a lone surrogate': () => '\ud83d',
    'a proxy whose traps throw': () =>
      new Proxy(
        {},
        {
          getPrototypeOf: () => {
            throw new Error('trap');
          },
        },
      ),
  };
  test.each(Object.keys(strange))(
    'such as %s undo no success: it took place once and is settled',
    async (name) => {
      const { custody, time } = await open();
      let calls = 0;
      const note = defineJob({
        ...base,
        idempotent: true,
        run: () => {
          calls += 1;
          return strange[name]?.();
        },
      });
      const { id } = await custody.enqueue(note, { n: 1 });
      custody.work([note]);
      await time.advance(60_000);
      expect(calls).toBe(1);
      expect((await custody.store.get(id))?.job).toMatchObject({ state: STATE.SUCCEEDED, attempt: 1 });
      expect(await custody.waitFor(id)).toHaveProperty('resultOmitted');
    },
  );
});

describe('reasons', () => {
  test('are readable, bounded and well formed wherever a long text is cut', () => {
    for (const length of [4_090, 4_091, 4_092, 4_093, 4_094, 4_095, 4_096, 4_097]) {
      const reason = reasonOf(new Error(`${'x'.repeat(length)}😀\u0000`));
      expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(4_096);
      expect(reason).not.toMatch(/[\p{Surrogate}\p{Cc}]/u);
    }
  });

  test('end although causes go on for ever or in a circle', () => {
    let chain = new Error('the first');
    for (let depth = 0; depth < 1_000; depth++) chain = new Error(`cause ${depth}`, { cause: chain });
    const circle = new Error('circle');
    circle.cause = circle;
    for (const error of [chain, circle, new Error('x'.repeat(10_000_000))]) {
      expect(reasonOf(error).length).toBeGreaterThan(0);
    }
  });
});

describe('a handler that does not stop', () => {
  test('is counted for as long as it goes on, and one that ended is not', async () => {
    const { custody, time, logged } = await open();
    const deaf = gate();
    const note = defineJob({
      ...base,
      idempotent: true,
      timeout: '1s',
      maxAttempts: 1,
      run: (job) => (job.payload.n === 0 ? deaf.promise : undefined),
    });
    for (const n of [0, 1, 2, 3]) await custody.enqueue(note, { n });
    const worker = custody.work([note]);
    await time.advance(500);
    expect(worker.stats().zombies).toBe(0);
    await time.advance(600);
    expect(worker.stats()).toMatchObject({ running: 0, zombies: 1 });
    expect(logged.some(({ message }) => message.includes('although its attempt is over'))).toBe(true);
    deaf.open();
    await time.advance(10);
    expect(worker.stats().zombies).toBe(0);
  });

  test('holds a slot once as many go on as there are slots, so handlers never pile up without bound', async () => {
    const { custody, time } = await open();
    let running = 0;
    const note = defineJob({
      ...base,
      idempotent: true,
      timeout: '1s',
      maxAttempts: 1,
      run: () => {
        running += 1;
        return new Promise(() => undefined);
      },
    });
    for (let n = 0; n < 20; n++) await custody.enqueue(note, { n });
    custody.work([note], { concurrency: 2 });
    await time.advance(60_000);
    expect(running).toBeLessThanOrEqual(4);
  });

  test('and throws its abort late has said nothing: the attempt stays UNCERTAIN', async () => {
    const { custody, time } = await open();
    const note = defineJob({
      ...base,
      idempotent: false,
      onThrow: 'permanent',
      timeout: '1s',
      run: (_job, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    });
    const { id } = await custody.enqueue(note, { n: 1 });
    custody.work([note]);
    await time.advance(5_000);
    expect((await custody.store.get(id))?.job.state).toBe(STATE.UNCERTAIN);
  });

  test('and blocks the event loop past its lease is named with the time measured, and nothing starts on lost leases', async () => {
    const { custody, time, logged } = await open();
    let calls = 0;
    const note = defineJob({
      ...base,
      idempotent: false,
      run: () => {
        calls += 1;
        time.block(3_000);
      },
    });
    const { id } = await custody.enqueue(note, { n: 1 });
    custody.work([note], { leaseMs: 1_000 });
    await time.advance(3_100);
    expect(calls).toBe(1);
    expect((await custody.store.get(id))?.job).toMatchObject({ delivery: 1 });
    expect(logged).toContainEqual(
      expect.objectContaining({
        message: expect.stringContaining('event loop was blocked') as string,
        details: expect.objectContaining({ blockedMs: expect.any(Number) as number }) as object,
      }),
    );
  });
});

describe('a cancellation', () => {
  test('stored before the worker ran keeps every handler from starting', async () => {
    const { custody, time } = await open();
    let calls = 0;
    const note = defineJob({
      ...base,
      idempotent: true,
      run: () => {
        calls += 1;
      },
    });
    for (let n = 0; n < 20; n++) {
      const { id } = await custody.enqueue(note, { n }, n % 2 === 0 ? {} : { delay: '1s' });
      await custody.store.cancel({ id, by: { actor: 'olga' } });
    }
    custody.work([note]);
    await time.advance(10_000);
    expect(calls).toBe(0);
    expect((await custody.store.counts()).states).toEqual({ [STATE.CANCELLED]: 20 });
  });

  test('that races with the end of its job agrees with the state in every round', async () => {
    const { custody, time } = await open();
    const note = defineJob({ ...base, idempotent: true, run: () => null });
    custody.work([note], { concurrency: 50 });
    for (let round = 0; round < 50; round++) {
      const { id } = await custody.enqueue(note, { n: round });
      const turns = round % 8;
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      const answer = await custody.store.cancel({ id, by: { actor: 'olga' } });
      await time.advance(5);
      const job = (await custody.store.get(id))?.job;
      const promised = answer.ok && answer.job.state === STATE.CANCELLED ? STATE.CANCELLED : STATE.SUCCEEDED;
      expect(job?.state).toBe(promised);
      expect(job?.cancelRequested).toBe(answer.ok && promised === STATE.SUCCEEDED);
    }
  });
});

describe('what a program gives', () => {
  test('is refused by its path when JSON would lose it', async () => {
    const { custody } = await open();
    const note = defineJob({ ...base, payload: anything, idempotent: true, run: () => null });
    const bad: readonly [unknown, string][] = [
      [{ a: 1n }, '$.a'],
      [{ a: [undefined] }, '$.a[0]'],
      [{ when: new Date(0) }, '$.when'],
      [Number.NaN, '$'],
      [{ text: '\ud83d' }, '$.text'],
    ];
    for (const [payload, path] of bad) {
      await expect(custody.enqueue(note, payload)).rejects.toMatchObject({ code: 'payload_refused', path });
    }
  });

  test('is refused by its name when it is no option, and nothing is stored', async () => {
    const { custody } = await open();
    const note = defineJob({ ...base, idempotent: true, run: () => null });
    const misspelt = { dedline: 5 } as object;
    await expect(custody.enqueue(note, { n: 1 }, misspelt)).rejects.toMatchObject({ field: 'dedline' });
    expect(() => custody.work([note], { lease: '2s' } as object)).toThrow('lease');
    for (const delay of [Number.NaN, -1, 1.5]) {
      await expect(custody.enqueue(note, { n: 1 }, { delay })).rejects.toMatchObject({ field: 'delay' });
    }
    await expect(custody.enqueue(note, { n: 1 }, { deadline: new Date('no') })).rejects.toMatchObject({
      field: 'deadline',
    });
    expect((await custody.store.counts()).states).toEqual({});
  });

  test('is refused at declaration and not at the first enqueue', () => {
    const run = (): null => null;
    const declare = (options: object) => () => defineJob({ ...base, idempotent: true, run, ...options });
    expect(declare({ queue: '' })).toThrow('queue');
    expect(declare({ requiresEffect: 'a\nb' })).toThrow('requiresEffect');
    expect(declare({ recurrence: { intervalMs: 0, maxOccurrences: 1, maxCatchUp: 0 } })).toThrow(
      'recurrence',
    );
    expect(declare({ schemaVersion: '' })).toThrow('schemaVersion');
    expect(declare({ acceptLateReports: 'yes' })).toThrow('acceptLateReports');
  });
});

describe('listeners and helpers of a program', () => {
  test('such as a logger that throws or rejects harm no job', async () => {
    const bad = (): never => {
      throw new Error('no space for logs');
    };
    const rejecting = (() => Promise.reject(new Error('late'))) as () => void;
    const { custody, time } = await open({ logger: { debug: bad, info: rejecting, warn: bad, error: bad } });
    const note = defineJob({
      ...base,
      idempotent: true,
      run: (_job, { log, progress }) => {
        log('half way');
        progress({ done: 0.5 });
      },
    });
    const { id } = await custody.enqueue(note, { n: 1 });
    custody.work([note]);
    await time.advance(10);
    expect((await custody.store.get(id))?.job.state).toBe(STATE.SUCCEEDED);
  });

  test('that ask for progress see what running handlers told last', async () => {
    const { custody, time } = await open();
    const work = gate();
    const note = defineJob({
      ...base,
      idempotent: true,
      run: async (_job, { progress }) => {
        progress(1);
        progress(2);
        await work.promise;
      },
    });
    const { id } = await custody.enqueue(note, { n: 1 });
    const worker = custody.work([note]);
    await time.advance(10);
    expect(worker.progress()).toEqual([{ id, value: 2 }]);
    work.open();
    await time.advance(10);
    expect(worker.progress()).toEqual([]);
  });

  test('that wait for a job can be told to stop waiting', async () => {
    const { custody, time } = await open();
    const note = defineJob({ ...base, idempotent: true, run: () => null });
    const { id } = await custody.enqueue(note, { n: 1 });
    const patience = new AbortController();
    const waiting = custody.waitFor(id, { signal: patience.signal });
    void time.settle().then(() => patience.abort(new Error('enough')));
    await expect(waiting).rejects.toThrow('enough');
  });
});

describe('retention', () => {
  test('lets succeeded jobs go by age, and never one that failed and was not dismissed', async () => {
    const { custody, time } = await open();
    const note = defineJob({
      ...base,
      idempotent: true,
      maxAttempts: 1,
      run: (job) => {
        if (job.payload.n === 1) throw new Error('no');
      },
    });
    const { id: fine } = await custody.enqueue(note, { n: 0 });
    const { id: failed } = await custody.enqueue(note, { n: 1 });
    custody.work([note], { pollMs: 3_600_000, retention: { succeededAfterMs: 60_000 } });
    await time.advance(10);
    expect(await custody.store.get(fine)).not.toBeNull();
    await time.advance(2 * 3_600_000);
    expect(await custody.store.get(fine)).toBeNull();
    expect((await custody.store.get(failed))?.job.state).toBe(STATE.DEAD_LETTERED);
  });
});
