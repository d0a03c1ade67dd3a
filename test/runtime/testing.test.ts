/** The helpers that programs test with: each says what really is, and fails when it is not. */
import { describe, expect, test } from 'vitest';
import { STATE } from '../../src/core/index.ts';
import { defineJob } from '../../src/runtime/definition.ts';
import { outcome } from '../../src/runtime/outcome.ts';
import { assertEnqueued, drain, runOnce } from '../../src/testing/index.ts';
import { numbered, open } from './fixtures.ts';

const base = { kind: 'note', revision: 1, payload: numbered } as const;
const note = defineJob({ ...base, idempotent: true, run: (job) => job.payload.n * 2 });

describe('runOnce', () => {
  test('runs the attempt that follows its history', async () => {
    const seen = defineJob({
      ...base,
      idempotent: true,
      run: (_job, { attempt, token }) => ({ attempt, token }),
    });
    expect(await runOnce(seen, { n: 1 })).toMatchObject({ outcome: 'succeeded', result: { attempt: 1 } });
    const third = await runOnce(seen, { n: 1 }, { history: ['retryable', 'lost', 'snoozed', 'interrupted'] });
    expect(third).toMatchObject({ result: { attempt: 3 }, job: { state: STATE.SUCCEEDED, delivery: 5 } });
  });

  test('says how an attempt failed and what became of the job', async () => {
    const failing = defineJob({ ...base, idempotent: false, run: () => outcome.permanent('card closed') });
    expect(await runOnce(failing, { n: 1 })).toMatchObject({
      outcome: 'permanent',
      reason: 'card closed',
      job: { state: STATE.PERMANENT_FAILURE },
    });
  });

  test('does not apply an effect again that its history committed', async () => {
    const deposit = defineJob({
      ...base,
      idempotent: true,
      run: (job, { commit }) =>
        commit('deposit', job.payload, (tx) => {
          tx.application['balance'] = 7;
          return 'applied now';
        }),
    });
    const fresh = await runOnce(deposit, { n: 7 });
    expect(fresh).toMatchObject({ result: 'applied now', application: { balance: 7 } });
    const committed = { deposit: { descriptor: { n: 7 }, result: 'applied before' } };
    const again = await runOnce(deposit, { n: 7 }, { history: ['lost'], committed });
    expect(again).toMatchObject({ result: 'applied before', application: {} });
  });

  test('refuses a history after which nothing can run', async () => {
    const once = defineJob({ ...base, idempotent: false, run: () => null });
    await expect(runOnce(once, { n: 1 }, { history: ['lost'] })).rejects.toMatchObject({ field: 'history' });
  });
});

describe('assertEnqueued', () => {
  test('answers the jobs that match a part of the payload or a function', async () => {
    const { custody } = await open();
    for (const n of [1, 2, 3]) await custody.enqueue(note, { n });
    expect(await assertEnqueued(custody, note, { n: 2 })).toHaveLength(1);
    expect(await assertEnqueued(custody, note, ({ n }) => n > 1, { times: 2 })).toHaveLength(2);
    expect(await assertEnqueued(custody, note)).toHaveLength(3);
  });

  test('fails with what there is when nothing matches, or not as often', async () => {
    const { custody } = await open();
    await expect(assertEnqueued(custody, note)).rejects.toThrow('found 0 among 0');
    await custody.enqueue(note, { n: 1 });
    await expect(assertEnqueued(custody, note, { n: 9 })).rejects.toThrow('job 1: {"n":1}');
    await expect(assertEnqueued(custody, note, { n: 1 }, { times: 2 })).rejects.toThrow('expected 2 jobs');
  });
});

describe('drain', () => {
  test('works off what is due, and with a simulated clock what lies ahead too', async () => {
    const { custody, time } = await open();
    let calls = 0;
    const flaky = defineJob({
      ...base,
      kind: 'flaky',
      idempotent: true,
      run: () => {
        calls += 1;
        if (calls === 1) throw new Error('once');
      },
    });
    await custody.enqueue(note, { n: 1 });
    await custody.enqueue(note, { n: 2 }, { delay: '1h' });
    await custody.enqueue(flaky, { n: 3 });
    const stats = await drain(custody, [note, flaky], { time });
    expect(stats).toMatchObject({ running: 0, settled: 4 });
    expect((await custody.store.counts()).states).toEqual({ [STATE.SUCCEEDED]: 3 });
  });

  test('leaves UNCERTAIN what nobody can know, and what another worker is for', async () => {
    const { custody, time } = await open();
    const doubtful = defineJob({
      ...base,
      kind: 'doubtful',
      idempotent: false,
      run: () => outcome.uncertain('?'),
    });
    await custody.enqueue(doubtful, { n: 1 });
    const { id } = await custody.enqueue(note, { n: 1 });
    await drain(custody, [doubtful], { time });
    expect((await custody.store.counts()).states[STATE.UNCERTAIN]).toBe(1);
    expect((await custody.store.get(id))?.job.state).toBe(STATE.PENDING);
  });
});
