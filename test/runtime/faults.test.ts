/** A store that is slow, silent or gone: no handler is called without custody, and no worker hangs or lives on. */
import { describe, expect, test } from 'vitest';
import { STATE } from '../../src/core/index.ts';
import { AttemptAborted } from '../../src/runtime/abort.ts';
import { openCustody } from '../../src/runtime/custody.ts';
import { defineJob } from '../../src/runtime/definition.ts';
import { outcome } from '../../src/runtime/outcome.ts';
import { StoreClosedError } from '../../src/store/errors.ts';
import type { Delivery, Store } from '../../src/store/store.ts';
import { simulatedClock } from '../../src/testing/index.ts';
import { faultyStore, gate, numbered, open } from './fixtures.ts';

const base = { kind: 'note', revision: 1, payload: numbered } as const;
const down = (): Promise<never> => Promise.reject(new Error('the store is down'));

describe('a claim', () => {
  test('answered after the worker was told to stop is given back, and its handler is never called', async () => {
    const time = simulatedClock();
    const answer = gate();
    const store = faultyStore(time, (real) => ({
      claim: async (request) => {
        const deliveries = await real.claim(request);
        await answer.promise;
        return deliveries;
      },
    }));
    const custody = await openCustody(store, { time });
    let calls = 0;
    const note = defineJob({
      ...base,
      idempotent: false,
      run: () => {
        calls += 1;
      },
    });
    const { id } = await custody.enqueue(note, { n: 1 });
    const worker = custody.work([note]);
    await time.advance(10);
    const stopped = worker.stop({ graceMs: 1_000 });
    answer.open();
    await time.advance(2_000);
    await stopped;
    expect(calls).toBe(0);
    expect((await store.get(id))?.job).toMatchObject({ state: STATE.PENDING, attempt: 0, runs: 0 });
  });

  test('whose answer was lost is found again, and its lease is trusted only since it was first sent', async () => {
    const time = simulatedClock();
    let lose = true;
    const store = faultyStore(time, (real) => ({
      claim: async (request) => {
        const deliveries = await real.claim(request);
        if (!lose || deliveries.length === 0) return deliveries;
        lose = false;
        await new Promise<void>((resolve) => {
          time.after(9_500, resolve);
        });
        return down();
      },
      extend: down,
      lapse: () => Promise.resolve({ ids: [], more: false }),
    }));
    const custody = await openCustody(store, { time });
    const deliveries: number[] = [];
    const note = defineJob({
      ...base,
      idempotent: false,
      run: (_job, { delivery }) => {
        deliveries.push(delivery);
        return new Promise(() => undefined);
      },
    });
    await custody.enqueue(note, { n: 1 });
    custody.work([note], { leaseMs: 10_000 });
    await time.advance(9_900);
    // The first delivery came back with too little of its lease left: it was given back, uncalled, and claimed anew.
    expect(deliveries).toEqual([2]);
  });

  test('that took longer than the deadline of its job calls no handler', async () => {
    const time = simulatedClock();
    const store = faultyStore(time, (real) => ({
      claim: async (request): Promise<readonly Delivery[]> => {
        const deliveries = await real.claim(request);
        if (deliveries.length > 0) {
          await new Promise<void>((resolve) => {
            time.after(600, resolve);
          });
        }
        return deliveries;
      },
    }));
    const custody = await openCustody(store, { time });
    let calls = 0;
    const note = defineJob({
      ...base,
      idempotent: false,
      run: () => {
        calls += 1;
      },
    });
    await custody.enqueue(note, { n: 1 }, { deadline: time.now() + 500 });
    custody.work([note]);
    await time.advance(700);
    expect(calls).toBe(0);
  });
});

describe('a lease', () => {
  test('ends for its handler in time although the heartbeat never gets an answer', async () => {
    const time = simulatedClock();
    const custody = await openCustody(
      faultyStore(time, () => ({ extend: () => new Promise(() => undefined) })),
      { time },
    );
    const heard: unknown[] = [];
    const note = defineJob({
      ...base,
      idempotent: false,
      run: (_job, { signal }) =>
        new Promise(() => {
          signal.addEventListener('abort', () => heard.push(signal.reason));
        }),
    });
    await custody.enqueue(note, { n: 1 });
    custody.work([note], { leaseMs: 1_000 });
    await time.advance(899);
    expect(heard).toEqual([]);
    await time.advance(2);
    expect(heard).toMatchObject([{ reason: 'lease_lost' }]);
    expect(heard[0]).toBeInstanceOf(AttemptAborted);
  });

  test('survives one failed round of heartbeats: nobody is told to stop and no attempt is charged', async () => {
    const time = simulatedClock();
    let fail = true;
    const store = faultyStore(time, (real) => ({
      extend: (extensions) => {
        if (!fail) return real.extend(extensions);
        fail = false;
        return down();
      },
    }));
    const custody = await openCustody(store, { time });
    const work = gate();
    const note = defineJob({ ...base, idempotent: false, run: () => work.promise });
    const { id } = await custody.enqueue(note, { n: 1 });
    const worker = custody.work([note], { leaseMs: 1_000 });
    await time.advance(5_000);
    work.open();
    await time.advance(10);
    expect((await store.get(id))?.job).toMatchObject({ state: STATE.SUCCEEDED, delivery: 1, attempt: 1 });
    expect(worker.stats().lost).toBe(0);
  });
});

describe('a settlement', () => {
  const settledThrough = async (
    outage: number,
    accept: boolean,
  ): Promise<{ readonly state: number | undefined; readonly lines: number }> => {
    const time = simulatedClock();
    let isDown = false;
    let lines = 0;
    const unless =
      <Arguments extends unknown[], Value>(call: (...given: Arguments) => Promise<Value>) =>
      (...given: Arguments): Promise<Value> =>
        isDown ? down() : call(...given);
    const store = faultyStore(time, (real) => ({
      settle: unless((...given: Parameters<Store['settle']>) => real.settle(...given)),
      claim: unless((request: Parameters<Store['claim']>[0]) => real.claim(request)),
      extend: unless((extensions: Parameters<Store['extend']>[0]) => real.extend(extensions)),
      lapse: unless((limit: number) => real.lapse(limit)),
    }));
    const count = (): void => {
      lines += 1;
    };
    const logger = { debug: () => undefined, info: () => undefined, warn: count, error: count };
    const custody = await openCustody(store, { time, logger });
    const work = gate();
    const note = defineJob({
      ...base,
      idempotent: false,
      acceptLateReports: accept,
      run: () => work.promise,
    });
    const { id } = await custody.enqueue(note, { n: 1 });
    custody.work([note], { leaseMs: 1_000 });
    await time.advance(10);
    isDown = true;
    work.open();
    await time.advance(outage);
    isDown = false;
    await time.advance(120_000);
    return { state: (await store.get(id))?.job.state, lines };
  };

  test('that cannot be stored is repeated while its lease lasts, and then stands', async () => {
    expect((await settledThrough(500, false)).state).toBe(STATE.SUCCEEDED);
  });

  test('that cannot be stored before its lease is over leaves the job UNCERTAIN, or decides it as a late report', async () => {
    expect((await settledThrough(5_000, false)).state).toBe(STATE.UNCERTAIN);
    expect((await settledThrough(5_000, true)).state).toBe(STATE.SUCCEEDED);
  });

  test('that cannot be stored for a minute is reported in fewer than twenty lines', async () => {
    expect((await settledThrough(60_000, true)).lines).toBeLessThan(20);
  });

  test('with a number that is none is refused in the handler, and holds back no other job', async () => {
    const { custody, time } = await open();
    const note = defineJob({
      ...base,
      idempotent: true,
      maxAttempts: 1,
      run: (job) => {
        switch (job.payload.n) {
          case 0:
            return outcome.retryable('later', { delayMs: Number.NaN });
          case 1:
            return outcome.retryable('later', { delayMs: 2 ** 50 });
          case 2:
            return outcome.snoozed(Number.POSITIVE_INFINITY);
          default:
            return 'done';
        }
      },
    });
    for (const n of [0, 1, 2, 3]) await custody.enqueue(note, { n });
    custody.work([note]);
    await time.advance(1_000);
    const { jobs } = await custody.store.find({});
    const { DEAD_LETTERED: dead, SUCCEEDED } = STATE;
    expect(jobs.map(({ job }) => job.state)).toEqual([dead, dead, dead, SUCCEEDED]);
    expect(jobs[0]?.report).toContain('delayMs');
  });

  test('with a snooze that is over before it begins starts again at once', async () => {
    const { custody, time } = await open();
    let calls = 0;
    const note = defineJob({
      ...base,
      idempotent: false,
      run: () => {
        calls += 1;
        return calls === 1 ? outcome.snoozed(1) : 'done';
      },
    });
    const { id } = await custody.enqueue(note, { n: 1 });
    custody.work([note]);
    await time.advance(1_000);
    expect((await custody.store.get(id))?.job).toMatchObject({ state: STATE.SUCCEEDED, attempt: 1 });
  });
});

describe('stopping', () => {
  test('ends although the store stays away: nobody waits longer than the leases that are held', async () => {
    const time = simulatedClock();
    let isDown = false;
    const store = faultyStore(time, (real) => ({
      settle: (settlements, claim) => (isDown ? down() : real.settle(settlements, claim)),
      extend: (extensions) => (isDown ? down() : real.extend(extensions)),
      claim: (request) => (isDown ? down() : real.claim(request)),
    }));
    const custody = await openCustody(store, { time });
    const work = gate();
    const note = defineJob({ ...base, idempotent: true, run: () => work.promise });
    await custody.enqueue(note, { n: 1 });
    const worker = custody.work([note], { leaseMs: 1_000 });
    await time.advance(10);
    isDown = true;
    work.open();
    const stopped = worker.stop({ graceMs: 1_000 });
    await time.advance(15_000);
    await stopped;
    expect(worker.stats()).toMatchObject({ running: 0, lost: 1 });
  });

  test('leaves nothing behind that asks the store, also when a call was under way', async () => {
    const time = simulatedClock();
    const answer = gate();
    let asked = 0;
    const note = defineJob({ ...base, idempotent: true, run: () => new Promise(() => undefined) });
    const store = faultyStore(time, (real) => ({
      extend: async (extensions) => {
        asked += 1;
        await answer.promise;
        return real.extend(extensions);
      },
      lapse: (limit) => {
        asked += 1;
        return real.lapse(limit);
      },
    }));
    const custody = await openCustody(store, { time });
    await custody.enqueue(note, { n: 1 });
    const worker = custody.work([note]);
    await time.advance(1_100);
    const stopped = worker.stop({ graceMs: 0 });
    await time.advance(100);
    await stopped;
    answer.open();
    await time.settle();
    const before = asked;
    await time.advance(3_600_000);
    expect(asked).toBe(before);
  });

  test('before the worker has started keeps it from ever starting', async () => {
    const time = simulatedClock();
    const registered = gate();
    let claims = 0;
    const store = faultyStore(time, (real) => ({
      register: async (registration) => {
        await registered.promise;
        return real.register(registration);
      },
      claim: (request) => {
        claims += 1;
        return real.claim(request);
      },
    }));
    const custody = await openCustody(store, { time });
    const worker = custody.work([defineJob({ ...base, idempotent: true, run: () => null })]);
    await worker.stop();
    registered.open();
    await time.advance(10_000);
    expect(claims).toBe(0);
  });
});

describe('starting', () => {
  test('waits for a store that is away, and goes on when it is back', async () => {
    const time = simulatedClock();
    let isDown = true;
    const store = faultyStore(time, (real) => ({
      register: (registration) => (isDown ? down() : real.register(registration)),
    }));
    const custody = await openCustody(store, { time });
    const note = defineJob({ ...base, idempotent: true, run: () => null });
    const { id } = await custody.enqueue(note, { n: 1 });
    custody.work([note]);
    await time.advance(5_000);
    isDown = false;
    await time.advance(20_000);
    expect((await store.get(id))?.job.state).toBe(STATE.SUCCEEDED);
  });

  test('fails for good, and says so, in a store that is closed', async () => {
    const { custody, logged } = await open();
    await custody.store.close();
    const worker = custody.work([defineJob({ ...base, idempotent: true, run: () => null })]);
    await expect(worker.started).rejects.toBeInstanceOf(StoreClosedError);
    expect(logged.some(({ message }) => message === 'the worker does not start')).toBe(true);
  });
});
