/** Opens a SQLite file durably or not at all: a file that cannot keep what is promised is refused before it is used. */
import { closeSync, existsSync, openSync, readSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { SqlConnection, SqlDriver } from './driver.ts';
import {
  ForeignFileError,
  isBusy,
  NewerSchemaError,
  StorageBusyError,
  StorageCorruptError,
  StorageFailedError,
  storageError,
  UnsafeFileSystemError,
} from './errors.ts';
import { APPLICATION_ID, MIGRATIONS } from './migrations.ts';
import { Columns } from './rows.ts';

/** How to wait a little; the caller's timers decide how. */
type Wait = (attempt: number) => Promise<void>;

export interface FileOptions {
  readonly driver: SqlDriver;
  readonly wait: Wait;
  readonly clockName: 'unix' | 'simulated';
  readonly keepKeysForMs: number;
  /** Open also where locks are known not to hold; for disks that look like a network and are none. */
  readonly allowUnsafeFileSystem: boolean;
  readonly warn: (message: string) => void;
}

/** Attempts at a lock before it is called stuck; with the waits between them about half a minute. */
export const BUSY_ATTEMPTS_MAX = 15_000;

/** File systems on which SQLite's shared log loses data, by the number the kernel knows them by. */
const UNSAFE_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'it is an NFS mount'],
  [0xff534d42, 'it is a CIFS mount'],
  [0xfe534d42, 'it is an SMB mount'],
  [0x517b, 'it is an SMB mount'],
  [0x65735546, 'it is a FUSE mount'],
  [0x01021997, 'it is a 9p mount'],
  [0x00c36400, 'it is a Ceph mount'],
]);

const MAGIC = 'SQLite format 3\0';
export const IN_MEMORY = ':memory:';

/** Opens, checks and migrates; what it returns is ready for writing. */
export async function openWriting(path: string, options: FileOptions): Promise<SqlConnection> {
  if (path !== IN_MEMORY) checkPlace(path, options.allowUnsafeFileSystem);
  return withRetries(path, options.wait, () => {
    const connection = options.driver.open(path, { readonly: false });
    try {
      checkOwner(connection, path);
      makeDurable(connection, path);
      migrate(connection, path, options);
      checkWhole(connection, path);
      return connection;
    } catch (error) {
      connection.close();
      throw error;
    }
  });
}

/** A second connection, which sees what was committed and never writes. */
export function openReading(path: string, driver: SqlDriver): SqlConnection {
  try {
    const connection = driver.open(path, { readonly: true });
    connection.exec('pragma query_only = on');
    return connection;
  } catch (error) {
    throw storageError(error, path);
  }
}

async function withRetries<Value>(path: string, wait: Wait, work: () => Value): Promise<Value> {
  for (let attempt = 0; attempt < BUSY_ATTEMPTS_MAX; attempt++) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw storageError(error, path);
      await wait(attempt);
    }
  }
  throw new StorageBusyError(path, BUSY_ATTEMPTS_MAX * 2);
}

function checkPlace(path: string, allowUnsafe: boolean): void {
  const folder = dirname(path);
  if (!existsSync(folder)) throw new StorageFailedError(path, `the folder ${folder} does not exist`);
  if (existsSync(path) && !statSync(path).isFile())
    throw new ForeignFileError(path, 'it is not a plain file');
  const problem = UNSAFE_FILE_SYSTEMS.get(statfsSync(folder).type);
  if (problem !== undefined && !allowUnsafe) throw new UnsafeFileSystemError(path, problem);
  if (!existsSync(path) || statSync(path).size === 0) return;
  const start = readStart(path);
  if (start !== MAGIC) throw new ForeignFileError(path, 'it is no SQLite database');
}

function readStart(path: string): string {
  const bytes = Buffer.alloc(MAGIC.length);
  try {
    const file = openSync(path, 'r');
    try {
      readSync(file, bytes, 0, bytes.length, 0);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new StorageFailedError(path, error instanceof Error ? error.message : 'it cannot be read');
  }
  return bytes.toString('latin1');
}

/** A file with tables that are not ours belongs to somebody else. */
function checkOwner(connection: SqlConnection, path: string): void {
  const id = pragma(connection, 'application_id');
  if (id === APPLICATION_ID) return;
  const tables = connection
    .prepare("select count(*) as tables from sqlite_schema where type = 'table'")
    .get();
  if (id !== 0 || (tables !== undefined && new Columns(tables).number('tables') > 0)) {
    throw new ForeignFileError(path, 'it holds tables of another program');
  }
}

/** Settings without which an answered commit could be lost, each read back: a driver's default may be less. */
function makeDurable(connection: SqlConnection, path: string): void {
  if (path !== IN_MEMORY && pragma(connection, 'journal_mode = wal') !== 'wal') {
    throw new UnsafeFileSystemError(path, 'the write-ahead log cannot be switched on');
  }
  connection.exec('pragma synchronous = full');
  if (pragma(connection, 'synchronous') !== 2) {
    throw new UnsafeFileSystemError(path, 'synchronous = full is not kept');
  }
  connection.exec(
    'pragma busy_timeout = 0; pragma journal_size_limit = 67108864; pragma cache_size = -65536',
  );
}

function pragma(connection: SqlConnection, text: string): unknown {
  const row = connection.prepare(`pragma ${text}`).get();
  return row === undefined ? undefined : Object.values(row)[0];
}

/** Runs what is missing, one transaction per step: `begin immediate` lets one process at a time find it missing. */
function migrate(connection: SqlConnection, path: string, options: FileOptions): void {
  const known = MIGRATIONS.at(-1)?.number ?? 0;
  const before = schemaOf(connection);
  if (before.number > known) {
    if (before.compatibleFrom > known) throw new NewerSchemaError(path, before.number, known);
    options.warn(`${path} has schema ${before.number}, newer than ${known} and compatible with it`);
    return;
  }
  for (const step of MIGRATIONS) {
    if (step.number <= before.number) continue;
    connection.exec('begin immediate');
    try {
      if (schemaOf(connection).number < step.number) {
        connection.exec(step.sql);
        connection.exec(`pragma application_id = ${APPLICATION_ID}`);
        connection
          .prepare('update custody_schema set number = ?, compatible_from = ?')
          .run(step.number, step.compatibleFrom);
        connection
          .prepare('insert into counter values (1, 1, 1, 0, ?, ?, 0, null) on conflict do nothing')
          .run(options.clockName, options.keepKeysForMs);
      }
      connection.exec('commit');
    } catch (error) {
      if (connection.inTransaction) connection.exec('rollback');
      throw error;
    }
  }
}

function schemaOf(connection: SqlConnection): { readonly number: number; readonly compatibleFrom: number } {
  const table = connection
    .prepare("select 1 as found from sqlite_schema where type = 'table' and name = 'custody_schema'")
    .get();
  if (table === undefined) return { number: 0, compatibleFrom: 0 };
  const row = connection.prepare('select number, compatible_from from custody_schema').get();
  if (row === undefined) return { number: 0, compatibleFrom: 0 };
  const columns = new Columns(row);
  return { number: columns.number('number'), compatibleFrom: columns.number('compatible_from') };
}

/** A file that was copied while it was open can hold jobs its counters do not know of: then tokens would return. */
function checkWhole(connection: SqlConnection, path: string): void {
  const row = connection
    .prepare(
      `select next_id, next_token,
        (select coalesce(max(id), 0) from submission) as last_id,
        (select count(*) from live where token >= next_token) as ahead
      from counter where one = 1`,
    )
    .get();
  if (row === undefined) throw new StorageCorruptError(path, 'its counters are missing');
  const columns = new Columns(row);
  if (columns.number('last_id') >= columns.number('next_id') || columns.number('ahead') > 0) {
    throw new StorageCorruptError(
      path,
      'its counters lie behind its jobs, as in a copy made while it was open',
    );
  }
}
