/**
 * Every statement of the SQLite store, prepared once. All writes run inside one `begin immediate` transaction, so there
 * is no other writer between a read and the write that depends on it; where a statement is safe for another reason, it
 * says so.
 */
import type { SqlConnection, SqlStatement } from './driver.ts';
import { LIVE_CHANGING, SETTLED_COLUMNS } from './rows.ts';

const marks = (count: number): string => Array.from({ length: count }, () => '?').join(', ');

/** The statements of the writing connection. */
export type Statements = ReadStatements & Readonly<Record<WriteName, SqlStatement>>;

/** Reads that either connection makes. */
export interface ReadStatements {
  readonly counter: SqlStatement;
  readonly writer: SqlStatement;
  readonly live: SqlStatement;
  readonly settled: SqlStatement;
  readonly asked: SqlStatement;
  readonly payload: SqlStatement;
  readonly key: SqlStatement;
  readonly effect: SqlStatement;
  readonly testimony: SqlStatement;
  readonly text: SqlStatement;
  readonly texts: SqlStatement;
  readonly pages: SqlStatement;
  readonly queue: SqlStatement;
  readonly pausedQueues: SqlStatement;
  readonly routes: SqlStatement;
  readonly ready: SqlStatement;
  readonly dueWaiting: SqlStatement;
  readonly nextOverdue: SqlStatement;
  readonly laneHead: SqlStatement;
  readonly claimed: SqlStatement;
  readonly worker: SqlStatement;
}

export function prepareReads(connection: SqlConnection): ReadStatements {
  const sql = (text: string): SqlStatement => connection.prepare(text);
  return {
    counter: sql('select * from counter where one = 1'),
    writer: sql('select commits from writer where writer = ?'),
    live: sql('select * from live where id = ?'),
    settled: sql('select * from settled where id = ?'),
    asked: sql('select asked from submission where id = ?'),
    payload: sql('select payload from submission where id = ?'),
    key: sql('select key, descriptor, id, keep_until from idempotency where key = ?'),
    effect: sql('select * from effect where lineage = ? and occurrence = ? and key = ?'),
    testimony: sql('select * from testimony where id = ? order by number'),
    text: sql('select text from result where id = ? and digest = ?'),
    texts: sql('select digest, text from result where id = ?'),
    pages: sql('select data from ledger_page where id = ? order by page'),
    queue: sql('select * from queue where queue = ?'),
    pausedQueues: sql('select queue from queue where paused is not null'),
    routes: sql('select route, queue, kind, revision, internal from route where route > ?'),
    // One ordered branch per route: a kind that nobody here runs is never scanned over.
    ready: sql('select 1 as found from live where route = ? and ready = 1 limit 1'),
    dueWaiting: sql(
      'select 1 as found from live where state = 1 and head = 1 and ready = 0 and run_at <= ? limit 1',
    ),
    nextOverdue: sql(
      'select id from live where lapse_at is not null and lapse_at <= ? order by lapse_at limit 1',
    ),
    worker: sql('select seen_at, definitions from worker where worker = ?'),
    claimed: sql('select 1 as found from live where claim_request = ? limit 1'),
    laneHead: sql('select id from live where lane = ? order by id limit 1'),
  };
}

export function prepareStatements(connection: SqlConnection): Statements {
  return { ...prepareReads(connection), ...writeStatements(connection) };
}

function writeStatements(connection: SqlConnection): Readonly<Record<WriteName, SqlStatement>> {
  const sql = (text: string): SqlStatement => connection.prepare(text);
  return {
    setCounter: sql('update counter set next_id = ?, next_token = ?, last_tick = ? where one = 1'),
    setWriter: sql(`
      insert into writer (writer, commits, seen_at) values (?, ?, ?)
      on conflict (writer) do update set commits = excluded.commits, seen_at = excluded.seen_at`),
    dataVersion: sql('pragma data_version'),
    seal: sql('update counter set sealed_to = ? where one = 1'),
    insertRoute: sql(
      'insert into route (queue, kind, revision, internal) values (?, ?, ?, ?) returning route',
    ),
    insertSubmission: sql(
      `insert into submission (id, route, ordering_key, asked, payload, request_id, lineage_root) values (${marks(7)})`,
    ),
    // A job without a lane is its own head; one with a lane is head exactly when no other job of the lane is live.
    // Parameters: lane, lane, then id to deadline, whether it is PENDING, and the changing columns.
    insertLive: sql(`
      with given (head) as (select ? is null or not exists (select 1 from live where lane = ?))
      insert into live (id, route, lane, priority, deadline, head, ready, ${LIVE_CHANGING.join(', ')})
      select ?, ?, ?, ?, ?, head, head and ?, ${marks(LIVE_CHANGING.length)} from given`),
    // ready follows state and head here and in ripen, and nowhere else: PENDING heads are ready, SCHEDULED ones ripen.
    updateLive: sql(`
      update live set ${LIVE_CHANGING.map((column) => `${column} = ?`).join(', ')}, ready = (head = 1 and ? = 0)
      where id = ?`),
    deleteLive: sql('delete from live where id = ?'),
    insertSettled: sql(
      `insert into settled (${SETTLED_COLUMNS.join(', ')}) values (${marks(SETTLED_COLUMNS.length)})`,
    ),
    amendSettled: sql('update settled set report_digest = ?, redriven_to = ?, dismissed = ? where id = ?'),
    // Runs in the transaction that took the head out of the lane, after it: the unique index on heads is the arbiter.
    promoteLane: sql(`
      update live set head = 1, ready = (state = 0)
      where id = (select id from live where lane = ? order by id limit 1)`),
    ripen: sql(`
      update live set ready = 1 where id in (
        select id from live where state = 1 and head = 1 and ready = 0 and run_at <= ? order by run_at limit 500)`),
    unripen: sql('update live set ready = 0 where state = 1 and ready = 1 and run_at > ?'),
    readyByPriority: sql(
      'select id, priority from live where route = ? and ready = 1 order by priority desc, id limit ?',
    ),
    readyByAge: sql('select id, priority from live where route = ? and ready = 1 order by id limit ?'),
    heldBy: sql('select id from live where claim_request = ?'),
    liveIds: sql('select id from live where id > ? order by id limit 1000'),
    requested: sql('select id from submission where request_id = ?'),
    lineageRoot: sql('select lineage_root from submission where id = ?'),
    insertText: sql('insert into result (id, digest, text) values (?, ?, ?) on conflict do nothing'),
    insertPage: sql('insert into ledger_page (id, page, data) values (?, ?, ?)'),
    setKey: sql(`
      insert into idempotency (key, descriptor, id, keep_until) values (?, ?, ?, ?)
      on conflict (key) do update set
        descriptor = excluded.descriptor, id = excluded.id, keep_until = excluded.keep_until`),
    setEffect: sql(`
      insert into effect (lineage, occurrence, key, type, done, descriptor, result, id, token) values (${marks(9)})
      on conflict (lineage, occurrence, key) do update set
        done = excluded.done, result = excluded.result, token = excluded.token, id = excluded.id`),
    deleteEffect: sql('delete from effect where lineage = ? and occurrence = ? and key = ?'),
    insertTestimony: sql(`
      insert into testimony (id, number, tick, worker, token, outcome, digest, report, chained)
      values (?, (select count(*) from testimony where id = ?), ?, ?, ?, ?, ?, ?, ?)`),
    setQueue: sql(`
      insert into queue (queue, max_unresolved, unresolved, paused) values (?, ?, ?, ?)
      on conflict (queue) do update set
        max_unresolved = excluded.max_unresolved, unresolved = excluded.unresolved, paused = excluded.paused`),
    countUnresolved: sql(`
      select count(*) as unresolved from route join live using (route) where queue = ? and internal = 0`),
    addUnresolved: sql(
      'update queue set unresolved = unresolved + ? where queue = ? and max_unresolved is not null',
    ),
    setWorker: sql(`
      insert into worker (worker, seen_at, definitions) values (?, ?, ?)
      on conflict (worker) do update set seen_at = excluded.seen_at, definitions = excluded.definitions`),
    seeWorker: sql('update worker set seen_at = ? where worker = ? and seen_at < ?'),
    definitions: sql(
      'select kind, revision, schema_digest, normalisation from definition where kind = ? and revision = ?',
    ),
    insertDefinition: sql(
      'insert into definition (kind, revision, schema_digest, normalisation) values (?, ?, ?, ?) on conflict do nothing',
    ),
    insertAct: sql('insert into act (act, tick, actor, reason, detail) values (?, ?, ?, ?, ?)'),
    application: sql('select state from application where one = 1'),
    setApplication: sql('update application set state = ? where one = 1'),
  };
}

type WriteName =
  | 'setCounter'
  | 'dataVersion'
  | 'setWriter'
  | 'seal'
  | 'insertRoute'
  | 'insertSubmission'
  | 'insertLive'
  | 'updateLive'
  | 'deleteLive'
  | 'insertSettled'
  | 'amendSettled'
  | 'promoteLane'
  | 'ripen'
  | 'unripen'
  | 'readyByPriority'
  | 'readyByAge'
  | 'heldBy'
  | 'liveIds'
  | 'requested'
  | 'lineageRoot'
  | 'insertText'
  | 'insertPage'
  | 'setKey'
  | 'setEffect'
  | 'deleteEffect'
  | 'insertTestimony'
  | 'setQueue'
  | 'countUnresolved'
  | 'addUnresolved'
  | 'setWorker'
  | 'seeWorker'
  | 'definitions'
  | 'insertDefinition'
  | 'insertAct'
  | 'application'
  | 'setApplication';
