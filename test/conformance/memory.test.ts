/** The memory store passes the conformance suite: what holds for it must hold for every other store. */
import { describe, expect, test } from 'vitest';
import { openMemoryStore } from '../../src/store/memory/index.ts';
import { assertCase, conformanceCases } from '../../src/testing/index.ts';
import { openMemory } from './open-memory.ts';

describe('memory', () => {
  for (const one of conformanceCases) {
    test(`${one.verb}: ${one.claim}`, () => assertCase(one, openMemory));
  }

  test('a snapshot of simulated time does not restore into a store of real time', async () => {
    const { store } = await openMemory();
    const real = openMemoryStore({ clock: () => 5_000, clockName: 'unix', randomId: () => 'r' });
    const restored = real.restore(await store.snapshot(), { as: 'copy', by: { actor: 'olga' } });
    await expect(restored).rejects.toMatchObject({ code: 'snapshot_refused', field: 'snapshot.clock' });
  });

  test('no work sleeps while somebody listens: each commit that makes some wakes', async () => {
    const { store } = await openMemory();
    const woken: string[] = [];
    store.subscribe(({ queues }) => woken.push(...queues));
    await store.enqueue([{ kind: 'mail', revision: 1, payload: 1, idempotent: true, queue: 'mail' }]);
    expect(woken).toEqual(['mail']);
    await store.pause('mail', { actor: 'olga' });
    woken.length = 0;
    await store.resume('mail', { actor: 'olga' });
    expect(woken).toEqual(['mail']);
  });

  test('a lease that ends between the look at it and the transaction commits nothing', async () => {
    const readings = [1_000, 1_000, 1_999, 2_000];
    const clock = (): number => (readings.length > 1 ? readings.shift() : readings[0]) ?? 0;
    const store = openMemoryStore({ clock, clockName: 'simulated', randomId: () => `r-${readings.length}` });
    await store.enqueue([{ kind: 'transfer', revision: 1, payload: 7, idempotent: true }]);
    const definitions = [{ kind: 'transfer', revision: 1, idempotent: true }];
    const request = { worker: 'w', leaseMs: 1_000, max: 1, requestId: 'r', definitions, begin: true };
    const [delivery] = await store.claim(request);
    const { id = 0, token = 0 } = delivery?.job ?? {};
    const answer = await store.transact({ id, token }, (tx) => {
      tx.application['balance'] = 7;
    });
    expect(answer).toMatchObject({ ok: false, refused: 'lease_lost' });
    expect(store.application()).toEqual({});
  });

  test('the claims of the suite are unique, so that a failure names one of them', () => {
    const names = conformanceCases.map(({ verb, claim }) => `${verb}: ${claim}`);
    expect(new Set(names).size).toBe(names.length);
  });
});
