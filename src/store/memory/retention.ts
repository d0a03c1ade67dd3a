/** Retention in memory: jobs with everything beside them, then keys and marks that nothing needs any more. */
import type { Engine } from '../engine/engine.ts';
import { isPrunable, readPruning } from '../engine/retention.ts';
import type { Row } from '../session.ts';
import type { Pruned, PruneRequest } from '../store.ts';
import { sourceOf } from './reads.ts';
import type { World } from './world.ts';

export function prune(world: World, engine: Engine, request: PruneRequest): Pruned {
  const pruning = readPruning(request);
  const { actor, reason, limit } = pruning;
  const { now } = engine;
  const source = sourceOf(world);
  let jobs = 0;
  const findDue = (): Row[] =>
    [...world.tables.rows.values()]
      .filter((row) => isPrunable(source, row, pruning, now))
      .sort(longestEndedFirst);
  // What goes may free others to go: an internal job follows its parent.
  let due = findDue();
  while (due.length > 0 && jobs < limit) {
    for (const row of due.slice(0, limit - jobs)) {
      remove(world, row);
      jobs += 1;
    }
    due = findDue();
  }
  const keys = pruneKeys(world, now);
  const effects = pruneEffects(world);
  const pruned = { jobs, keys, effects, more: due.length > 0 };
  engine.session.addAct('prune', { actor, reason: reason?.text ?? null }, JSON.stringify(pruned));
  return pruned;
}

function longestEndedFirst(a: Row, b: Row): number {
  return (a.job.endedAt ?? 0) - (b.job.endedAt ?? 0) || a.job.id - b.job.id;
}

function remove(world: World, row: Row): void {
  const { id } = row.job;
  world.tables.rows.delete(id);
  world.tables.payloads.delete(id);
  world.tables.testimony.delete(id);
  const { requestId } = row.job.submission;
  if (requestId !== null) world.tables.requests.delete(requestId);
}

function pruneKeys(world: World, now: number): number {
  const over = [...world.tables.keys.values()].filter(
    ({ jobId, keepUntil }) =>
      keepUntil !== null && now >= keepUntil && world.tables.rows.get(jobId) === undefined,
  );
  for (const { key } of over) world.tables.keys.delete(key);
  return over.length;
}

/** Marks belong to a lineage and go with its last job. */
function pruneEffects(world: World): number {
  const lineages = new Set([...world.tables.rows.values()].map((row) => row.job.submission.lineage));
  const over = [...world.tables.effects.entries()].filter(([, mark]) => !lineages.has(mark.lineage));
  for (const [key] of over) world.tables.effects.delete(key);
  return over.length;
}
