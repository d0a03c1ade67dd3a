/** Retention in SQLite: jobs with everything beside them, in one bounded transaction, then keys and marks without a job. */
import type { State } from '../../core/index.ts';
import type { Engine } from '../engine/engine.ts';
import { isPrunable, readPruning } from '../engine/retention.ts';
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
    for (const [state, ageMs] of ages) {
      if (ageMs === null) continue;
      for (const id of endedIds(connection, state, engine.now - ageMs)) {
        if (due.length > limit) return due;
        const row = source.row(id);
        if (row !== undefined && isPrunable(source, row, pruning, engine.now)) due.push(id);
      }
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

function* endedIds(connection: SqlConnection, state: State, before: number): Generator<number> {
  const ended = connection.prepare(
    'select id from settled where state = ? and ended_at <= ? order by ended_at, id',
  );
  for (const row of ended.all(state, before)) yield new Columns(row).number('id');
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
