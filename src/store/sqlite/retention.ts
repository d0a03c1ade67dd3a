/** Retention in SQLite: jobs with everything beside them, in one bounded transaction, then keys and marks without a job. */
import type { Engine } from '../engine/engine.ts';
import { isPrunable, type Pruning, readPruning } from '../engine/retention.ts';
import type { Pruned, PruneRequest } from '../store.ts';
import type { SqlConnection, SqlStatement } from './driver.ts';
import { Columns } from './rows.ts';
import type { SqliteSession } from './session.ts';

/** Tables that hold what belongs to one job. */
const TABLES = ['settled', 'submission', 'result', 'ledger_page', 'testimony'] as const;

export function prune(
  engine: Engine,
  connection: SqlConnection,
  session: SqliteSession,
  request: PruneRequest,
): Pruned {
  const pruning = readPruning(request);
  const { actor, reason, limit, ages } = pruning;
  const source = session.source();
  const findDue = (): number[] => {
    const due: number[] = [];
    for (const id of endedIds(connection, ages, engine.now)) {
      if (due.length > limit) break;
      const row = source.row(id);
      if (row !== undefined && isPrunable(source, row, pruning, engine.now)) due.push(id);
    }
    return due;
  };
  let jobs = 0;
  let effects = 0;
  // What goes may free others to go: an internal job follows its parent.
  let due = findDue();
  while (due.length > 0 && jobs < limit) {
    const taken = due.slice(0, limit - jobs);
    effects += removeJobs(connection, taken);
    session.forget(taken);
    jobs += taken.length;
    due = findDue();
  }
  const keys = removeKeys(connection, engine.now);
  const pruned = { jobs, keys, effects, more: due.length > 0 };
  engine.session.addAct('prune', { actor, reason: reason?.text ?? null }, JSON.stringify(pruned));
  return pruned;
}

/** Ids of jobs old enough by their state, the longest ended first. */
function* endedIds(connection: SqlConnection, ages: Pruning['ages'], now: number): Generator<number> {
  const bounds = [...ages].flatMap(([state, ageMs]) =>
    ageMs === null ? [] : [{ state, before: now - ageMs }],
  );
  if (bounds.length === 0) return;
  const branches = bounds.map(() => 'select id, ended_at from settled where state = ? and ended_at <= ?');
  const ended = connection.prepare(`select id from (${branches.join(' union all ')}) order by ended_at, id`);
  const parameters = bounds.flatMap(({ state, before }) => [state, before]);
  for (const row of ended.iterate(...parameters)) yield new Columns(row).number('id');
}

/** Removes jobs, and the marks of a lineage with its last job. */
function removeJobs(connection: SqlConnection, ids: readonly number[]): number {
  const lineage = connection.prepare(
    `select lineage_root, json_extract(asked, '$.lineage') as lineage from submission where id = ?`,
  );
  const kin = connection.prepare(
    'select 1 as found from submission where id = ? or lineage_root = ? limit 1',
  );
  const marks = connection.prepare('delete from effect where lineage = ?');
  const removals: readonly SqlStatement[] = TABLES.map((table) =>
    connection.prepare(`delete from ${table} where id = ?`),
  );
  let effects = 0;
  for (const id of ids) {
    const row = lineage.get(id);
    for (const removal of removals) removal.run(id);
    if (row === undefined) continue;
    const columns = new Columns(row);
    const root = columns.numberOrNull('lineage_root') ?? id;
    if (kin.get(root, root) === undefined) effects += marks.run(columns.text('lineage')).changes;
  }
  return effects;
}

function removeKeys(connection: SqlConnection, now: number): number {
  return connection
    .prepare(
      `delete from idempotency where keep_until is not null and keep_until <= ?
        and not exists (select 1 from submission where submission.id = idempotency.id)`,
    )
    .run(now).changes;
}
