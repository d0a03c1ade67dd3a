/** What a transaction must not let through, whoever keeps it, nests in it, or swallows what it threw; for every store. */
import { expect, test } from 'vitest';
import type { OpenedStore } from '../../src/testing/index.ts';

const DEFINITIONS = [{ kind: 'deposit', revision: 1, idempotent: true }];

async function held({ store }: OpenedStore): Promise<{ id: number; token: number }> {
  await store.enqueue([{ kind: 'deposit', revision: 1, payload: 7, idempotent: true }]);
  const request = {
    worker: 'w',
    leaseMs: 1_000,
    max: 1,
    requestId: 'c',
    definitions: DEFINITIONS,
    begin: true,
  };
  const [delivery] = await store.claim(request);
  if (delivery === undefined) throw new Error('nothing was claimed');
  return { id: delivery.job.id, token: delivery.job.token };
}

/** The balance as a transaction reads it. */
async function balance(opened: OpenedStore, holder: { id: number; token: number }): Promise<number> {
  const read = await opened.store.transact(holder, (tx) => opened.account.read(tx.application));
  if (!read.ok) throw new Error(read.refused);
  return read.value;
}

export function transactionTests(open: () => Promise<OpenedStore>): void {
  test('a transaction kept beyond its end reads and writes nothing', async () => {
    const opened = await open();
    const holder = await held(opened);
    let kept: { application: unknown; job: unknown } | undefined;
    let application: Record<string, unknown> = {};
    await opened.store.transact(holder, (tx) => {
      kept = tx;
      application = tx.application;
    });
    expect(() => kept?.application).toThrow(/transaction is over/);
    expect(() => kept?.job).toThrow(/transaction is over/);
    application['balance'] = 1_000;
    expect(await balance(opened, holder)).toBe(0);
    await opened.close();
  });

  test('an apply that goes on after its end adds nothing, however often it is tried', async () => {
    const opened = await open();
    const holder = await held(opened);
    for (let time = 0; time < 2; time++) {
      const late = opened.store.transact(holder, async (tx) => {
        await Promise.resolve();
        opened.account.add(tx.application, 7);
      });
      await expect(late).rejects.toMatchObject({ code: 'invalid_input' });
    }
    expect(await balance(opened, holder)).toBe(0);
    await opened.close();
  });

  test('an effect inside an effect rolls everything back', async () => {
    const opened = await open();
    const { store, account } = opened;
    const holder = await held(opened);
    const nested = store.transact(holder, (tx) =>
      tx.commitEffect('k', 1, () => {
        tx.commitEffect('k', 1, () => account.add(tx.application, 7));
        account.add(tx.application, 7);
      }),
    );
    await expect(nested).rejects.toMatchObject({ code: 'invalid_input' });
    expect(await balance(opened, holder)).toBe(0);
    await opened.close();
  });

  test('an effect that throws is not half committed when its caller swallows it', async () => {
    const opened = await open();
    const { store, account } = opened;
    const holder = await held(opened);
    const swallowed = store.transact(holder, (tx) => {
      try {
        tx.commitEffect('k', 1, () => {
          account.add(tx.application, 7);
          throw new Error('no');
        });
      } catch {
        // As a handler might.
      }
    });
    await expect(swallowed).rejects.toThrow('no');
    await store.transact(holder, (tx) => tx.commitEffect('k', 1, () => account.add(tx.application, 7)));
    expect(await balance(opened, holder)).toBe(7);
    await opened.close();
  });

  test('a store with tombstones, settings or state of its own takes no other history', async () => {
    const source = await open();
    await held(source);
    const snapshot = await source.store.snapshot();
    const target = await open();
    await target.store.pause('mail', { actor: 'olga' });
    const restored = target.store.restore(snapshot, { as: 'copy', by: { actor: 'olga' } });
    await expect(restored).rejects.toMatchObject({ code: 'snapshot_refused', field: 'store' });
    await source.close();
    await target.close();
  });

  test('a misspelt option is refused by name, before it could be without effect', async () => {
    const opened = await open();
    const { store } = opened;
    const by = { actor: 'olga' };
    const misspelt: readonly (() => Promise<unknown>)[] = [
      () => store.prune({ by, succeededAfterMS: null } as never),
      () => store.redrive({ id: 1, by, dryrun: true } as never),
      () => store.find({ queue: ['a'] } as never),
      () => store.settle([{ id: 1, token: 1, worker: 'w', outcome: 'retryable', delay: 5 } as never]),
    ];
    for (const call of misspelt) await expect(call()).rejects.toMatchObject({ code: 'invalid_input' });
    await opened.close();
  });
}
