/** Many jobs at once, and the end of a process: heartbeats, settlements and stops that meet lose and double nothing. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { STATE } from '../../src/core/index.ts';
import { openCustody } from '../../src/runtime/custody.ts';
import { defineJob } from '../../src/runtime/definition.ts';
import { drain } from '../../src/testing/index.ts';
import { numbered, open } from './fixtures.ts';

const base = { kind: 'note', revision: 1, payload: numbered } as const;

test('2,000 jobs whose ends meet heartbeats every 33 ms each run once and succeed', async () => {
  const { custody, time } = await open();
  const runs = new Map<number, number>();
  const note = defineJob({
    ...base,
    idempotent: false,
    run: async (job) => {
      const { n } = job.payload;
      runs.set(n, (runs.get(n) ?? 0) + 1);
      if (n % 4 === 0) return;
      await new Promise<void>((resolve) => {
        time.after(n % 101, resolve);
      });
    },
  });
  const items = Array.from({ length: 2_000 }, (_, n) => ({ payload: { n } }));
  await custody.enqueueMany(note, items);
  const worker = custody.work([note], { concurrency: 200, leaseMs: 100 });
  for (let round = 0; round < 60 && worker.stats().settled < 2_000; round++) await time.advance(50);
  expect((await custody.store.counts()).states).toEqual({ [STATE.SUCCEEDED]: 2_000 });
  expect(runs.size).toBe(2_000);
  expect(Math.max(...runs.values())).toBe(1);
  expect(worker.stats()).toMatchObject({ lost: 0, zombies: 0, running: 0 });
}, 60_000);

test('stopping waits for ten handlers and stores each success; with less grace it gives them back at once', async () => {
  for (const [graceMs, state] of [
    [5_000, STATE.SUCCEEDED],
    [1_000, STATE.PENDING],
  ] as const) {
    const { custody, time } = await open();
    const note = defineJob({
      ...base,
      idempotent: true,
      run: (_job, { signal }) =>
        new Promise<void>((resolve, reject) => {
          time.after(2_000, resolve);
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    });
    await custody.enqueueMany(
      note,
      Array.from({ length: 10 }, (_, n) => ({ payload: { n } })),
    );
    const worker = custody.work([note], { leaseMs: 500 });
    await time.advance(10);
    const stopped = worker.stop({ graceMs });
    await time.advance(Math.min(graceMs, 2_000) + 100);
    await stopped;
    expect((await custody.store.counts()).states).toEqual({ [state]: 10 });
  }
});

test('a SQLite file is drained by real timers, and closing leaves nothing held', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'custody-runtime-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const custody = await openCustody(`sqlite:${join(folder, 'jobs.db')}`);
  const note = defineJob({ ...base, idempotent: true, run: (job) => job.payload.n });
  await custody.enqueueMany(
    note,
    Array.from({ length: 200 }, (_, n) => ({ payload: { n } })),
  );
  const stats = await drain(custody, [note], { concurrency: 20 });
  expect(stats).toMatchObject({ settled: 200, lost: 0, running: 0, zombies: 0 });
  expect(await custody.waitFor(7)).toBe(6);
  await custody.close();
});
