/** The schema of a SQLite store, step by step: each step commits whole, once, however many processes boot at one time. */

/** One step. `compatibleFrom` is the oldest schema a program must know to work with the result. */
export interface Migration {
  readonly number: number;
  readonly compatibleFrom: number;
  readonly sql: string;
}

/** Marks the file as ours (`CUST`), so that no other program's file is ever changed. */
export const APPLICATION_ID = 0x43555354;

const FIRST = `
-- Who wrote this file last, by which schema, and which programs may still work with it.
create table custody_schema (
  one integer primary key check (one = 1),
  number integer not null,
  compatible_from integer not null
) strict;

-- What only rises. It lies beside the jobs so that no rowid, and no token, returns after pruning.
create table counter (
  one integer primary key check (one = 1),
  next_id integer not null check (next_id between 1 and 9007199254740991),
  next_token integer not null check (next_token between 1 and 9007199254740991),
  last_tick integer not null check (last_tick >= 0),
  clock text not null check (clock in ('unix', 'simulated')),
  keep_keys_for_ms integer not null,
  -- Rises with each restore: ids may then stand for other jobs than before.
  epoch integer not null,
  sealed_to text
) strict;

-- Commits of each open store, so that one whose answer was lost can be found again, whatever others committed since.
create table writer (
  writer text primary key,
  commits integer not null,
  seen_at integer not null
) strict, without rowid;

-- (queue, kind, revision, internal) as a small number: a claim reads one ordered branch per route.
create table route (
  route integer primary key,
  queue text not null,
  kind text not null,
  revision integer not null check (revision between 1 and 255),
  internal integer not null check (internal in (0, 1)),
  unique (queue, kind, revision, internal)
) strict;

-- What was asked; written once. asked is the canonical JSON the job's chain begins from.
create table submission (
  id integer primary key,
  route integer not null,
  ordering_key text,
  asked text not null,
  payload text not null,
  request_id text,
  lineage_root integer
) strict;
create unique index submission_request on submission (request_id) where request_id is not null;
create index submission_lineage on submission (lineage_root) where lineage_root is not null;

-- One narrow row for each unresolved job, changed in place. head and ready are marks for finding work: head, this job is
-- its lane's oldest; ready, head and awaiting a worker now.
create table live (
  id integer primary key,
  route integer not null,
  lane text,
  priority integer not null,
  state integer not null check (state in (0, 1, 2, 3, 8)),
  version integer not null,
  tick integer not null,
  idempotent integer not null,
  attempt integer not null check (attempt >= 0),
  delivery integer not null check (delivery >= 0),
  runs integer not null check (runs >= 0),
  occurrence integer not null,
  run_at integer not null,
  slot_at integer,
  deadline integer,
  token integer not null,
  worker text,
  lease_until integer,
  lease_ms integer,
  lapse_at integer,
  head integer not null check (head in (0, 1)),
  ready integer not null check (ready in (0, 1)),
  cancel_requested integer not null,
  cause text,
  answered_token integer,
  answered_outcome text,
  answered_digest text,
  claim_request text,
  report_digest text,
  root text not null,
  ledger blob not null,
  pages integer not null,
  claimed_at integer,
  claimed_until integer,
  begun_at integer,
  begun_until integer,
  rare text,
  check ((state in (2, 3)) = (worker is not null and lease_until is not null and lease_ms is not null)),
  check (ready = 0 or (head = 1 and state in (0, 1)))
) strict;
create unique index live_lane_head on live (lane) where head = 1 and lane is not null;
create index live_lane on live (lane, id) where lane is not null;
create index live_ready on live (route, priority desc, id) where ready = 1;
create index live_ready_oldest on live (route, id) where ready = 1;
create index live_waiting on live (run_at) where state = 1 and head = 1 and ready = 0;
create index live_lapse on live (lapse_at) where lapse_at is not null;
create index live_claim_request on live (claim_request) where claim_request is not null;

-- Written once, when a job ends: the row that was live, without what only the living need.
create table settled (
  id integer primary key,
  route integer not null,
  lane text,
  state integer not null check (state in (4, 6, 7, 9)),
  version integer not null,
  tick integer not null,
  idempotent integer not null,
  attempt integer not null,
  delivery integer not null,
  runs integer not null,
  occurrence integer not null,
  run_at integer not null,
  slot_at integer,
  token integer not null,
  cancel_requested integer not null,
  outcome_unknown integer not null,
  cause text,
  answered_token integer,
  answered_outcome text,
  answered_digest text,
  report_digest text,
  root text not null,
  ledger blob not null,
  pages integer not null,
  rare text,
  ended_at integer not null,
  redriven_to integer,
  dismissed text
) strict;
-- Retention reads it in order; counts read it alone, without the rows.
create index settled_ended on settled (state, ended_at, route);
-- Listings of what did not succeed do not pass over what did.
create index settled_failed on settled (state, id) where state <> 4;

-- Texts by the digest that the chain holds: results, reasons, reports.
create table result (
  id integer not null,
  digest text not null,
  text text not null,
  primary key (id, digest)
) strict, without rowid;

-- Closed entries that no longer fit the row; insert-only.
create table ledger_page (
  id integer not null,
  page integer not null,
  data blob not null,
  primary key (id, page)
) strict;

create table idempotency (
  key text primary key,
  descriptor text not null,
  id integer not null,
  keep_until integer
) strict, without rowid;
create index idempotency_over on idempotency (keep_until) where keep_until is not null;

-- One mark per effect: a key is taken once in a lineage and occurrence, whoever tries.
create table effect (
  lineage text not null,
  occurrence integer not null,
  key text not null,
  type text not null check (type in ('commit', 'step')),
  done integer not null check (done in (0, 1)),
  descriptor text not null,
  result text,
  id integer not null,
  token integer not null,
  primary key (lineage, occurrence, key)
) strict, without rowid;

-- Reports that came too late; they decide nothing by themselves.
create table testimony (
  id integer not null,
  number integer not null,
  tick integer not null,
  worker text not null,
  token integer not null,
  outcome text not null,
  digest text not null,
  report text not null,
  chained integer not null,
  primary key (id, number)
) strict, without rowid;

-- unresolved is counted only while there is a bound to hold it against.
create table queue (
  queue text primary key,
  max_unresolved integer,
  unresolved integer not null,
  paused text
) strict, without rowid;

create table worker (
  worker text primary key,
  seen_at integer not null,
  definitions text not null
) strict, without rowid;

create table definition (
  kind text not null,
  revision integer not null,
  schema_digest text,
  normalisation text not null
) strict;
create unique index definition_once on definition (kind, revision, coalesce(schema_digest, ''), normalisation);

-- What was done to the store itself, by whom and why; insert-only.
create table act (
  number integer primary key,
  act text not null,
  tick integer not null,
  actor text not null,
  reason text,
  detail text not null
) strict;

-- The JSON the program keeps beside its jobs, for programs without tables of their own.
create table application (
  one integer primary key check (one = 1),
  state text not null
) strict;

insert into custody_schema values (1, 1, 1);
insert into application values (1, '{}');
`;

/** All steps, in order. */
export const MIGRATIONS: readonly Migration[] = [{ number: 1, compatibleFrom: 1, sql: FIRST }];
