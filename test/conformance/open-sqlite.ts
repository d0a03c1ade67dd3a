/** A SQLite store on a real file of its own, as the suites open it; a restart opens the same file again. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { openSqliteStore } from '../../src/store/sqlite/index.ts';
import { jsonAccount, type ManualClock, manualClock, type OpenedStore } from '../../src/testing/index.ts';

let ids = 0;

export async function openSqlite(): Promise<OpenedStore> {
  return openNew(manualClock(1_000), tmpdir());
}

/** A store on a memory disk where the machine has one: the same file and log, without the wait for a disk. */
export async function openSqliteQuickly(clock: ManualClock): Promise<OpenedStore> {
  return openNew(clock, existsSync('/dev/shm') ? '/dev/shm' : tmpdir());
}

async function openNew(clock: ManualClock, parent: string): Promise<OpenedStore> {
  const folder = mkdtempSync(join(parent, 'custody-'));
  return openFile(join(folder, 'jobs.db'), clock, () => rmSync(folder, { recursive: true, force: true }));
}

async function openFile(path: string, clock: ManualClock, remove: () => void): Promise<OpenedStore> {
  const store = await openSqliteStore(path, {
    clock: () => clock.now(),
    clockName: 'simulated',
    randomId: () => `id-${++ids}`,
  });
  return {
    store,
    clock,
    account: jsonAccount,
    reopen: async () => {
      await store.close();
      return openFile(path, clock, remove);
    },
    fresh: () => openNew(clock, dirname(dirname(path))),
    close: async () => {
      await store.close();
      remove();
    },
  };
}
