/** What the properties need of a store: how it is opened on a clock, and how much of the run it can bear. */
import { openMemoryStore } from '../../src/store/memory/index.ts';
import { jsonAccount, type ManualClock, type OpenedStore } from '../../src/testing/index.ts';

/** A store under test. */
export interface Backend {
  readonly name: string;
  open(clock: ManualClock): Promise<OpenedStore>;
  /** Whether a snapshot carries the program's own state to another store. */
  readonly applicationMoves: boolean;
  /** Share of the memory store's runs that a slower backend does; 1 for all of them. */
  readonly share: number;
}

/** How many runs to do of `usual`: CUSTODY_PROPERTY_RUNS multiplies. */
export function runsOf(backend: Backend, usual: number): number {
  const factor = Number(process.env['CUSTODY_PROPERTY_RUNS'] ?? '1');
  if (!(factor > 0)) throw new RangeError('CUSTODY_PROPERTY_RUNS must be a number above 0');
  return Math.max(1, Math.round(usual * factor * backend.share));
}

let serial = 0;

function openMemory(clock: ManualClock): OpenedStore {
  const store = openMemoryStore({
    clock: () => clock.now(),
    clockName: 'simulated',
    randomId: () => {
      serial += 1;
      return `lineage-${serial}`;
    },
  });
  return {
    store,
    clock,
    account: jsonAccount,
    async reopen() {
      const text = JSON.stringify(await store.snapshot());
      await store.close();
      const next = openMemory(clock);
      await next.store.restore(JSON.parse(text), { as: 'restart', by: { actor: 'restart' } });
      return next;
    },
    fresh: async () => openMemory(clock),
    close: () => store.close(),
  };
}

/** The memory store, which restarts from a snapshot that went through JSON text. */
export const memoryBackend: Backend = {
  name: 'memory',
  open: async (clock) => openMemory(clock),
  applicationMoves: true,
  share: 1,
};
