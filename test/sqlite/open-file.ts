/** Opens SQLite stores on files of their own, with a driver whose connections a test can look at and interfere with. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { betterSqliteDriver, type SqlConnection, type SqlDriver } from '../../src/store/sqlite/driver.ts';
import { openSqliteStore, type SqliteStore, type SqliteStoreOptions } from '../../src/store/sqlite/index.ts';

let serial = 0;

/** A path in a folder that goes with the test. */
export function freshPath(name = 'jobs.db'): string {
  const folder = mkdtempSync(join(tmpdir(), 'custody-file-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, name);
}

/** Opens a store that the test closes, if it has not itself. */
export async function openAt(path: string, options: Partial<SqliteStoreOptions> = {}): Promise<SqliteStore> {
  const store = await openSqliteStore(path, {
    clock: () => 1_000,
    clockName: 'simulated',
    randomId: () => `id-${++serial}`,
    ...options,
  });
  onTestFinished(() => store.close());
  return store;
}

/** A driver that hands out every connection it opened, and lets a test change what executing a text does. */
export interface WatchedDriver extends SqlDriver {
  readonly connections: SqlConnection[];
  /** Called instead of executing a text; `execute` does it. */
  onExec: (text: string, execute: () => void) => void;
}

export function watchedDriver(): WatchedDriver {
  const driver = betterSqliteDriver();
  const watched: WatchedDriver = {
    name: driver.name,
    connections: [],
    onExec: (_text, execute) => execute(),
    open: (path, options) => {
      const connection = driver.open(path, options);
      watched.connections.push(connection);
      return {
        prepare: (sql) => connection.prepare(sql),
        exec: (text) => watched.onExec(text, () => connection.exec(text)),
        close: () => connection.close(),
        get inTransaction() {
          return connection.inTransaction;
        },
      };
    },
  };
  return watched;
}

/** A job that says little. */
export function job(n: number): { kind: string; revision: number; payload: unknown; idempotent: boolean } {
  return { kind: 'note', revision: 1, payload: { n }, idempotent: true };
}
