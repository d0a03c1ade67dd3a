/** Opens memory stores for the suites; a restart is a snapshot restored into a new store while the old one is closed. */
import { openMemoryStore } from '../../src/store/memory/index.ts';
import { jsonAccount, type ManualClock, manualClock, type OpenedStore } from '../../src/testing/index.ts';

let serial = 0;

/** An empty memory store with a clock that only the case moves. */
export async function openMemory(clock: ManualClock = manualClock(1_000)): Promise<OpenedStore> {
  const store = openMemoryStore({
    clock: () => clock.now(),
    clockName: 'simulated',
    randomId: () => {
      serial += 1;
      return `random-${serial}`;
    },
  });
  return {
    store,
    clock,
    account: jsonAccount,
    async reopen() {
      const snapshot = await store.snapshot();
      await store.close();
      const next = await openMemory(clock);
      await next.store.restore(snapshot, { as: 'restart', by: { actor: 'restart' } });
      return next;
    },
    fresh: () => openMemory(clock),
    close: () => store.close(),
  };
}
