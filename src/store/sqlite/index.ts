/** `custody/sqlite`: jobs in one SQLite file, for one machine and any number of its processes. */
export type { SqlConnection, SqlDriver, SqlRow, SqlStatement, SqlValue } from './driver.ts';
export {
  DriverUnavailableError,
  ForeignFileError,
  NewerSchemaError,
  OutcomeUnknownError,
  StorageBusyError,
  StorageCorruptError,
  StorageFailedError,
  StorageFullError,
  StorageReadOnlyError,
  UnsafeFileSystemError,
} from './errors.ts';
export { openSqliteStore, type SqliteStore, type SqliteStoreOptions } from './sqlite-store.ts';
