/** Looks beneath a SQLite store without changing it: what a doctor asks, also of a file that a store refuses to open. */
import { existsSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { betterSqliteDriver, type SqlConnection, type SqlDriver } from './driver.ts';
import { ForeignFileError, StorageFailedError, storageError } from './errors.ts';
import { openReading } from './file.ts';
import { APPLICATION_ID, MIGRATIONS } from './migrations.ts';
import { Columns } from './rows.ts';

/** What was found in the file, nothing of it judged. */
export interface Inspection {
  readonly path: string;
  readonly fileBytes: number;
  /** Size of the write-ahead log; 0 when there is none. */
  readonly walBytes: number;
  /** Bytes this user may still write on the disk. */
  readonly freeBytes: number;
  readonly journalMode: string;
  readonly schema: { readonly number: number; readonly compatibleFrom: number; readonly known: number };
  readonly clock: 'unix' | 'simulated';
  readonly lastTick: number;
  readonly sealedTo: string | null;
  readonly nextId: number;
  readonly nextToken: number;
  /** Largest id and token that rows hold; both must lie below the counters. */
  readonly lastId: number;
  readonly lastToken: number;
  /** What SQLite's own check of the file says; empty when it is sound. */
  readonly damage: readonly string[];
  /** Ids of jobs that are both unresolved and settled; at most 20 of each list. */
  readonly liveAndSettled: readonly number[];
  /** Ids of submissions that are neither. */
  readonly lost: readonly number[];
  /** Ids of rows without a submission. */
  readonly orphaned: readonly number[];
  /** Oldest jobs of lanes that are not marked as the head they are. */
  readonly headless: readonly number[];
  /** Bounded queues whose counter is not the number of their unresolved jobs. */
  readonly miscounted: readonly string[];
}

/** A connection that only looks. */
export interface SqliteInspector {
  ids(after: number, limit: number): readonly number[];
  inspect(options: { readonly full: boolean }): Inspection;
  close(): void;
}

/**
 * Opens a file for looking, which neither creates nor migrates it. Throws a typed error for a file that is no store.
 *
 * @example
 * ```ts
 * const inspector = openSqliteInspector('jobs.db');
 * inspector.inspect({ full: false }).damage; // []
 * ```
 */
export function openSqliteInspector(path: string, driver: SqlDriver = betterSqliteDriver()): SqliteInspector {
  if (!existsSync(path)) throw new StorageFailedError(path, 'there is no such file');
  const connection = openReading(path, driver);
  try {
    checkOurs(connection, path);
    const page = connection.prepare(`
      select id from submission where id > ? union select id from live where id > ?
      union select id from settled where id > ? order by id limit ?`);
    return {
      ids: (after, limit) => page.all(after, after, after, limit).map((row) => new Columns(row).number('id')),
      inspect: ({ full }) => inspect(connection, path, full),
      close: () => connection.close(),
    };
  } catch (error) {
    connection.close();
    throw storageError(error, path);
  }
}

function checkOurs(connection: SqlConnection, path: string): void {
  if (pragma(connection, 'application_id') !== APPLICATION_ID) {
    throw new ForeignFileError(path, 'it does not carry the mark of one');
  }
}

const LISTED_MAX = 20;

function inspect(connection: SqlConnection, path: string, full: boolean): Inspection {
  const ids = (sql: string): readonly number[] =>
    connection
      .prepare(`${sql} limit ${LISTED_MAX}`)
      .all()
      .map((row) => new Columns(row).number('id'));
  const one = (sql: string): Columns => new Columns(connection.prepare(sql).get() ?? {});
  const schema = one('select number, compatible_from from custody_schema');
  const counter = one('select * from counter');
  const last = one(`
    select coalesce((select max(id) from submission), 0) as id,
      max(coalesce((select max(token) from live), 0), coalesce((select max(token) from settled), 0)) as token`);
  const disk = statfsSync(dirname(path));
  return {
    path,
    fileBytes: statSync(path).size,
    walBytes: existsSync(`${path}-wal`) ? statSync(`${path}-wal`).size : 0,
    freeBytes: disk.bavail * disk.bsize,
    journalMode: String(pragma(connection, 'journal_mode')),
    schema: {
      number: schema.number('number'),
      compatibleFrom: schema.number('compatible_from'),
      known: MIGRATIONS.at(-1)?.number ?? 0,
    },
    clock: counter.text('clock') === 'unix' ? 'unix' : 'simulated',
    lastTick: counter.number('last_tick'),
    sealedTo: counter.textOrNull('sealed_to'),
    nextId: counter.number('next_id'),
    nextToken: counter.number('next_token'),
    lastId: last.number('id'),
    lastToken: last.number('token'),
    damage: damageOf(connection, full),
    liveAndSettled: ids('select id from live join settled using (id) order by id'),
    lost: ids(`select id from submission where not exists (select 1 from live where live.id = submission.id)
      and not exists (select 1 from settled where settled.id = submission.id) order by id`),
    orphaned: ids(`select id from (select id from live union select id from settled)
      except select id from submission order by id`),
    headless: ids(`select min(id) as id from live where lane is not null group by lane
      having sum(head) <> 1 or min(id) <> max(case when head = 1 then id else 0 end)`),
    miscounted: connection
      .prepare(
        `select queue from queue where max_unresolved is not null and unresolved <> (
          select count(*) from live join route using (route) where route.queue = queue.queue and internal = 0
        ) limit ${LISTED_MAX}`,
      )
      .all()
      .map((row) => new Columns(row).text('queue')),
  };
}

/** A quick check finds broken pages; a full one also indexes that disagree with their tables. */
function damageOf(connection: SqlConnection, full: boolean): readonly string[] {
  const check = full ? 'integrity_check' : 'quick_check';
  const lines = connection
    .prepare(`pragma ${check}(${LISTED_MAX})`)
    .all()
    .map((row) => String(Object.values(row)[0]));
  return lines.length === 1 && lines[0] === 'ok' ? [] : lines;
}

function pragma(connection: SqlConnection, name: string): unknown {
  return Object.values(connection.prepare(`pragma ${name}`).get() ?? {})[0];
}
