/** What can be wrong with a SQLite file, each as its own error: nothing acknowledged was lost, and each says what to do. */
import { CustodyError } from '../errors.ts';

/** The SQLite driver cannot be loaded. */
export class DriverUnavailableError extends CustodyError {
  readonly code = 'driver_unavailable';

  constructor(problem: string) {
    super(
      `the SQLite driver cannot be used: ${problem}`,
      'Install better-sqlite3 (12 on Node 20, 13 from Node 22) and let its install script run.',
    );
  }
}

/** The disk, or the quota of the file, is full. */
export class StorageFullError extends CustodyError {
  readonly code = 'storage_full';

  constructor(path: string) {
    super(`no space is left for ${path}`, 'Free space and call again; nothing of this call was stored.');
  }
}

/** The file, or its folder, may not be written. */
export class StorageReadOnlyError extends CustodyError {
  readonly code = 'storage_read_only';

  constructor(path: string) {
    super(
      `${path} cannot be written`,
      'Give this user write permission to the file and to its folder, where SQLite keeps its log.',
    );
  }
}

/** The file is damaged. */
export class StorageCorruptError extends CustodyError {
  readonly code = 'storage_corrupt';

  constructor(path: string, problem: string) {
    super(
      `${path} is damaged: ${problem}`,
      'Stop every process that uses it, keep a copy of all its files, and restore the last backup.',
    );
  }
}

/** The file is no SQLite database, or belongs to another program. */
export class ForeignFileError extends CustodyError {
  readonly code = 'foreign_file';

  constructor(path: string, problem: string) {
    super(`${path} is not a Custody store: ${problem}`, 'Name another file; this one was not changed.');
  }
}

/** The file was written by a newer, incompatible version. */
export class NewerSchemaError extends CustodyError {
  readonly code = 'newer_schema';

  constructor(path: string, found: number, known: number) {
    super(
      `${path} has schema ${found}; this version reads up to ${known}`,
      'Use the version of Custody that wrote it, or a newer one; nothing was changed.',
    );
  }
}

/** The file lies where SQLite's log cannot be shared safely. */
export class UnsafeFileSystemError extends CustodyError {
  readonly code = 'unsafe_file_system';

  constructor(path: string, problem: string) {
    super(
      `${path} cannot be kept safely there: ${problem}`,
      'Put the file on a local disk; a network or shared mount loses locks and data.',
    );
  }
}

/** Another process held the write lock longer than the bound. */
export class StorageBusyError extends CustodyError {
  readonly code = 'storage_busy';

  constructor(path: string, waitedMs: number) {
    super(
      `${path} stayed locked for ${waitedMs} ms`,
      'Look for a process that keeps a write transaction open; calling again is safe.',
    );
  }
}

/** Reading or writing the file failed below SQLite. */
export class StorageFailedError extends CustodyError {
  readonly code = 'storage_failed';

  constructor(path: string, problem: string) {
    super(
      `${path} cannot be used: ${problem}`,
      'Check the disk and the mount; the store opens the file anew on the next call.',
    );
  }
}

/** Nobody could find out whether a commit took effect. */
export class OutcomeUnknownError extends CustodyError {
  readonly code = 'outcome_unknown';

  constructor(path: string) {
    super(
      `nobody knows whether the last commit to ${path} took effect`,
      'Ask again with the same request id or token once the file can be read: the answer tells.',
    );
  }
}

/** The error of the driver, as ours. Errors that are none of storage's are bugs and go on as they are. */
export function storageError(error: unknown, path: string): unknown {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const message = error instanceof Error ? error.message : '';
  if (code.startsWith('SQLITE_FULL')) return new StorageFullError(path);
  if (code.startsWith('SQLITE_READONLY') || code.startsWith('SQLITE_PERM'))
    return new StorageReadOnlyError(path);
  if (code.startsWith('SQLITE_CORRUPT')) return new StorageCorruptError(path, message);
  if (code.startsWith('SQLITE_NOTADB')) return new ForeignFileError(path, 'it is no SQLite database');
  if (code.startsWith('SQLITE_CANTOPEN')) return new StorageFailedError(path, message);
  if (code.startsWith('SQLITE_IOERR')) {
    return /no space|ENOSPC/i.test(message)
      ? new StorageFullError(path)
      : new StorageFailedError(path, message);
  }
  return error;
}

/** Whether another connection holds what this one needs, so that trying again is all there is to do. */
export function isBusy(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED');
}
