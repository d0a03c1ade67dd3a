/** The structural interface of a SQLite driver, and the one that is proven: no type of a driver leaks past this file. */
import { createRequire } from 'node:module';
import { DriverUnavailableError } from './errors.ts';

/** A value as SQLite keeps it; integers are safe integers. */
export type SqlValue = number | string | Uint8Array | null;

/** A row as the driver answers it. */
export type SqlRow = Readonly<Record<string, SqlValue>>;

/** A prepared statement. Parameters are bound by position and never become SQL. */
export interface SqlStatement {
  run(...parameters: readonly SqlValue[]): { readonly changes: number };
  get(...parameters: readonly SqlValue[]): SqlRow | undefined;
  all(...parameters: readonly SqlValue[]): readonly SqlRow[];
  iterate(...parameters: readonly SqlValue[]): IterableIterator<SqlRow>;
}

/** One connection. It is synchronous: what it does is done when it returns. */
export interface SqlConnection {
  prepare(sql: string): SqlStatement;
  exec(sql: string): void;
  close(): void;
  readonly inTransaction: boolean;
}

/** How a connection is opened. */
export interface SqlDriver {
  readonly name: string;
  open(path: string, options: { readonly readonly: boolean }): SqlConnection;
}

interface BetterSqlite {
  new (path: string, options: { readonly readonly: boolean; readonly timeout: number }): BetterSqliteDatabase;
}

interface BetterSqliteDatabase {
  prepare(sql: string): SqlStatement;
  exec(sql: string): unknown;
  close(): unknown;
  readonly inTransaction: boolean;
  readonly open: boolean;
}

/**
 * better-sqlite3. Major 13 ships its binaries and needs Node 22; on Node 20 it would crash the process, so that is
 * refused here before it is loaded. The busy timeout is 0: the driver's own waiting sleeps on the event loop.
 */
export function betterSqliteDriver(): SqlDriver {
  const require = createRequire(import.meta.url);
  const Database = load(require);
  return {
    name: 'better-sqlite3',
    open: (path, { readonly }) => {
      const database = new Database(path, { readonly, timeout: 0 });
      return {
        prepare: (sql) => database.prepare(sql),
        exec: (sql) => {
          database.exec(sql);
        },
        close: () => {
          if (database.open) database.close();
        },
        get inTransaction() {
          return database.inTransaction;
        },
      };
    },
  };
}

function load(require: NodeJS.Require): BetterSqlite {
  try {
    const { version } = require('better-sqlite3/package.json') as { version: string };
    const major = Number(version.split('.')[0]);
    const node = Number(process.versions.node.split('.')[0]);
    if (major >= 13 && node < 22) {
      throw new DriverUnavailableError(`better-sqlite3 ${version} crashes Node ${process.versions.node}`);
    }
    return require('better-sqlite3') as BetterSqlite;
  } catch (error) {
    if (error instanceof DriverUnavailableError) throw error;
    throw new DriverUnavailableError(error instanceof Error ? (error.message.split('\n')[0] ?? '') : '');
  }
}
