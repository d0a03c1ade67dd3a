/** Retention in memory: only what has ended goes, nothing a person must see, and keys stay until their own time is over. */
import { limits, STATE, type State } from '../../core/index.ts';
import type { Engine } from '../engine/engine.ts';
import { readBy, readFields, readWhole } from '../input.ts';
import type { Row } from '../session.ts';
import type { Pruned, PruneRequest } from '../store.ts';
import { compensationOf, viewOf } from './reads.ts';
import type { World } from './world.ts';

export function prune(world: World, engine: Engine, request: PruneRequest): Pruned {
  const { actor, reason } = readBy(readFields(request, 'request').by);
  const limit = readWhole(request.limit ?? limits.prunePageMax, 'limit', 1, limits.prunePageMax);
  const ages = readAges(request);
  const { now } = engine;
  const due = [...world.tables.rows.values()].filter((row) =>
    isPrunable(world, row, ages, request.undismissed === true, now),
  );
  for (const row of due.slice(0, limit)) remove(world, row);
  const keys = pruneKeys(world, now);
  const effects = pruneEffects(world);
  const pruned = { jobs: Math.min(due.length, limit), keys, effects, more: due.length > limit };
  engine.session.addAct('prune', { actor, reason: reason?.text ?? null }, JSON.stringify(pruned));
  return pruned;
}

type Ages = ReadonlyMap<State, number | null>;

function readAges(request: PruneRequest): Ages {
  const age = (value: number | null | undefined, field: string, fallback: number | null): number | null => {
    if (value === undefined) return fallback;
    return value === null ? null : readWhole(value, field, 0, limits.tickMax);
  };
  const failed = age(request.failedAfterMs, 'failedAfterMs', limits.keepSucceededMsDefault);
  return new Map<State, number | null>([
    [STATE.SUCCEEDED, age(request.succeededAfterMs, 'succeededAfterMs', limits.keepSucceededMsDefault)],
    [STATE.CANCELLED, age(request.cancelledAfterMs, 'cancelledAfterMs', limits.keepCancelledMsDefault)],
    [STATE.PERMANENT_FAILURE, failed],
    [STATE.DEAD_LETTERED, failed],
  ]);
}

function isPrunable(world: World, row: Row, ages: Ages, undismissed: boolean, now: number): boolean {
  const { state, endedAt, submission } = row.job;
  const ageMs = ages.get(state) ?? null;
  if (endedAt === null || ageMs === null || now - endedAt < ageMs) return false;
  // An internal job is evidence of its parent's decision and goes when the parent is gone.
  if (submission.internal !== null) return world.tables.rows.get(submission.internal.parentId) === undefined;
  const failed = state === STATE.PERMANENT_FAILURE || state === STATE.DEAD_LETTERED;
  if (undismissed) return true;
  if (failed && row.dismissed === null) return false;
  return viewOf(world, row).needsYou === null && compensationIsOver(world, row);
}

/** A job whose compensation still has to run is needed by it. */
function compensationIsOver(world: World, row: Row): boolean {
  const compensation = compensationOf(world, row.job);
  return compensation === null || compensation.job.endedAt !== null;
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
