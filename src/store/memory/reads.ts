/** Reads of the memory store: they lapse nothing and share nothing with the store. */
import {
  type Context,
  type Job,
  laneOf,
  lapse,
  limits,
  type State,
  stateIsTerminal,
} from '../../core/index.ts';
import { detach } from '../engine/detach.ts';
import { NO_CONTEXT } from '../engine/engine.ts';
import { contradictionsOf, isOver, matches, needsYouOf, type ViewSource, viewOf } from '../engine/views.ts';
import { explainJob } from '../explain.ts';
import { readDefinitions, readQuery, readWhole } from '../input.ts';
import type {
  ClaimRequest,
  Counts,
  Explanation,
  FindQuery,
  Found,
  JobEvidence,
  JobView,
  LaneView,
  QueueView,
  WorkerView,
} from '../store.ts';

import type { World } from './world.ts';

/** The store's tables as views read them. */
export function sourceOf(world: World): ViewSource {
  const { rows, payloads, keys, testimony } = world.tables;
  return {
    row: (id) => rows.get(id),
    payload: (id) => payloads.get(id) ?? '',
    key: (key) => keys.get(key),
    testimony: (id) => testimony.get(id) ?? [],
    text: (row, digest) => row.texts[digest] ?? null,
  };
}

export function get(world: World, id: number): JobView | null {
  const row = world.tables.rows.get(id);
  return row === undefined ? null : detach(viewOf(sourceOf(world), row));
}

export function getByKey(
  world: World,
  key: string,
  now: number,
): { id: number; view: JobView | null } | null {
  const held = world.tables.keys.get(key);
  const view = held === undefined ? null : get(world, held.jobId);
  return held === undefined || isOver(held, view, now) ? null : { id: held.jobId, view };
}

export function find(world: World, given: FindQuery): Found {
  const query = readQuery(given);
  const limit = query.limit ?? limits.findPageDefault;
  const afterId = query.afterId ?? 0;
  const source = sourceOf(world);
  const jobs: JobView[] = [];
  for (const row of [...world.tables.rows.values()].sort((a, b) => a.job.id - b.job.id)) {
    if (row.job.id <= afterId || !matches(source, row, query)) continue;
    if (jobs.length === limit) return detach({ jobs, nextAfterId: jobs.at(-1)?.job.id ?? null });
    jobs.push(viewOf(source, row));
  }
  return detach({ jobs, nextAfterId: null });
}

export function counts(world: World, now: number): Counts {
  const source = sourceOf(world);
  const states: Record<number, number> = {};
  let needs = 0;
  let contradictions = 0;
  let stranded = 0;
  const alive = workers(world, now).filter((worker) => worker.alive);
  for (const row of world.tables.rows.values()) {
    states[row.job.state] = (states[row.job.state] ?? 0) + 1;
    if (needsYouOf(source, row) !== null) needs += 1;
    contradictions += contradictionsOf(source, row);
    const { kind, revision } = row.job.submission;
    const taken = alive.some((worker) =>
      worker.definitions.some((one) => one.kind === kind && one.revision >= revision),
    );
    if (!stateIsTerminal(row.job.state) && !taken) stranded += 1;
  }
  return { states, needsYou: needs, stranded, contradictions };
}

export function queues(world: World): readonly QueueView[] {
  const views = new Map<string, { states: Record<number, number> }>();
  const viewFor = (queue: string): { states: Record<number, number> } => {
    const view = views.get(queue) ?? { states: {} };
    views.set(queue, view);
    return view;
  };
  for (const { queue } of world.tables.queues.values()) viewFor(queue);
  for (const { job } of world.tables.rows.values()) {
    const { states } = viewFor(job.submission.queue);
    states[job.state] = (states[job.state] ?? 0) + 1;
  }
  return [...views].sort(byName).map(([queue, { states }]) => {
    const row = world.tables.queues.get(queue);
    return detach({
      queue,
      maxUnresolved: row?.maxUnresolved ?? null,
      paused: row?.paused ?? null,
      states,
      unresolved: world.index.unresolved(queue),
    });
  });
}

function byName(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  return a[0] < b[0] ? -1 : 1;
}

export function lanes(world: World, limit: number): readonly LaneView[] {
  const bound = readWhole(limit, 'limit', 1, limits.findPageMax);
  const found = new Map<string, { head: Job; unresolved: number }>();
  for (const { job } of world.tables.rows.values()) {
    const lane = laneOf(job.submission.queue, job.submission.orderingKey);
    if (lane === null || stateIsTerminal(job.state)) continue;
    const known = found.get(lane);
    const head = known === undefined || job.id < known.head.id ? job : known.head;
    found.set(lane, { head, unresolved: (known?.unresolved ?? 0) + 1 });
  }
  return [...found.values()]
    .sort((a, b) => b.unresolved - a.unresolved || a.head.id - b.head.id)
    .slice(0, bound)
    .map(({ head, unresolved }) => ({
      queue: head.submission.queue,
      orderingKey: head.submission.orderingKey ?? '',
      headId: head.id,
      headState: head.state as State,
      unresolved,
    }));
}

export function workers(world: World, now: number): readonly WorkerView[] {
  const leases = new Map<string, number>();
  for (const { job } of world.tables.rows.values()) {
    if (job.lease !== null) leases.set(job.lease.worker, (leases.get(job.lease.worker) ?? 0) + 1);
  }
  return [...world.tables.workers.values()].map(({ worker, seenAt, definitions }) =>
    detach({
      worker,
      seenAt,
      alive: now - seenAt <= limits.workerAliveMs,
      definitions,
      leases: leases.get(worker) ?? 0,
    }),
  );
}

export function evidence(world: World, id: number): JobEvidence | null {
  const row = world.tables.rows.get(id);
  if (row === undefined) return null;
  const { job, chain, texts } = row;
  const source = sourceOf(world);
  const testimony = source.testimony(id);
  return detach({ job, payload: source.payload(id), chain, texts, testimony });
}

export function explain(
  world: World,
  id: number,
  definitions: ClaimRequest['definitions'],
  now: number,
): Explanation | null {
  const row = world.tables.rows.get(id);
  if (row === undefined) return null;
  const { queue, kind } = row.job.submission;
  const head = headNow(world, row.job, now);
  const pausedBy = world.tables.queues.get(queue)?.paused?.actor ?? null;
  const context: Context = {
    ...NO_CONTEXT,
    laneHead: head === null || head.id === id,
    queuePaused: pausedBy !== null,
    claimer:
      readDefinitions(definitions, 'definitions').find((definition) => definition.kind === kind) ?? null,
  };
  return explainJob({ job: row.job, now, context, headId: head?.id ?? null, pausedBy });
}

/** The head of the job's lane as it will be once what is overdue has been lapsed; nothing is written here. */
function headNow(world: World, job: Job, now: number): Job | null {
  const lane = laneOf(job.submission.queue, job.submission.orderingKey);
  if (lane === null) return null;
  let head: Job | null = null;
  for (const row of world.tables.rows.values()) {
    const other = row.job;
    if (laneOf(other.submission.queue, other.submission.orderingKey) !== lane) continue;
    if (stateIsTerminal(lapse(other, now).job.state)) continue;
    if (head === null || other.id < head.id) head = other;
  }
  return head;
}
