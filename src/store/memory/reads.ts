/** Reads of the memory store: they lapse nothing and share nothing with the store. */
import {
  type Context,
  compensationIsRequired,
  everRan,
  internalKey,
  type Job,
  laneOf,
  lapse,
  limits,
  needsYou,
  STATE,
  type State,
  stateIsTerminal,
} from '../../core/index.ts';
import { NO_CONTEXT } from '../engine/engine.ts';
import { explainJob } from '../explain.ts';
import { readFields, readWhole } from '../input.ts';
import type { Row } from '../session.ts';
import type {
  ClaimRequest,
  Counts,
  Explanation,
  FindQuery,
  Found,
  JobEvidence,
  JobView,
  LaneView,
  NeedsYou,
  QueueView,
  Testimony,
  WorkerView,
} from '../store.ts';

import type { World } from './world.ts';

export function viewOf(world: World, row: Row): JobView {
  const { job, redrivenTo, dismissed } = row;
  const testimony = testimonyOf(world, job.id);
  return structuredClone({
    job,
    payload: payloadOf(world, job.id),
    report: row.reportDigest === null ? null : (row.texts[row.reportDigest] ?? null),
    redrivenTo,
    dismissed,
    testimony,
    contradictions: contradictionsOf(world, row),
    needsYou: needsYouOf(world, row),
  });
}

function testimonyOf(world: World, id: number): readonly Testimony[] {
  return world.tables.testimony.get(id) ?? [];
}

function payloadOf(world: World, id: number): string {
  return world.tables.payloads.get(id) ?? '';
}

/** The compensation of a job's last attempt, if one was ever enqueued. */
export function compensationOf(world: World, job: Job): Row | null {
  const key = internalKey({ purpose: 'compensate', parentId: job.id, parentToken: job.token });
  const id = everRan(job) ? world.tables.keys.get(key)?.jobId : undefined;
  return id === undefined ? null : (world.tables.rows.get(id) ?? null);
}

/** Definite reports that say otherwise than what the job ended as. */
function contradictionsOf(world: World, row: Row): number {
  if (!stateIsTerminal(row.job.state)) return 0;
  const succeeded = row.job.state === STATE.SUCCEEDED;
  return testimonyOf(world, row.job.id).filter(
    ({ outcome }) => (outcome === 'succeeded' && !succeeded) || (outcome === 'permanent' && succeeded),
  ).length;
}

function needsYouOf(world: World, row: Row): NeedsYou | null {
  if (row.dismissed !== null) return null;
  const own = needsYou(row.job);
  if (own !== null) return own;
  if (contradictionsOf(world, row) > 0) return 'contradiction';
  const required = compensationIsRequired(everRan(row.job), row.job.state);
  const compensation = required ? compensationOf(world, row.job) : null;
  if (compensation === null || !stateIsTerminal(compensation.job.state)) return null;
  return compensation.job.state === STATE.SUCCEEDED ? null : 'compensation_failed';
}

export function get(world: World, id: number): JobView | null {
  const row = world.tables.rows.get(id);
  return row === undefined ? null : viewOf(world, row);
}

export function getByKey(world: World, key: string): { id: number; view: JobView | null } | null {
  const held = world.tables.keys.get(key);
  return held === undefined ? null : { id: held.jobId, view: get(world, held.jobId) };
}

export function find(world: World, query: FindQuery): Found {
  readFields(query, 'query');
  const limit = readWhole(query.limit ?? limits.findPageDefault, 'limit', 1, limits.findPageMax);
  const afterId = readWhole(query.afterId ?? 0, 'afterId', 0, limits.idMax);
  const jobs: JobView[] = [];
  for (const row of [...world.tables.rows.values()].sort((a, b) => a.job.id - b.job.id)) {
    if (row.job.id <= afterId || !matches(world, row, query)) continue;
    if (jobs.length === limit) return { jobs, nextAfterId: jobs.at(-1)?.job.id ?? null };
    jobs.push(viewOf(world, row));
  }
  return { jobs, nextAfterId: null };
}

function matches(world: World, row: Row, query: FindQuery): boolean {
  const { state, submission } = row.job;
  return (
    (query.states?.includes(state) ?? true) &&
    (query.kinds?.includes(submission.kind) ?? true) &&
    (query.queues?.includes(submission.queue) ?? true) &&
    (query.orderingKey == null || query.orderingKey === submission.orderingKey) &&
    (query.lineage == null || query.lineage === submission.lineage) &&
    (query.internal === true || submission.internal === null) &&
    (query.needsYou !== true || needsYouOf(world, row) !== null)
  );
}

export function counts(world: World, now: number): Counts {
  const states: Record<number, number> = {};
  let needs = 0;
  let contradictions = 0;
  let stranded = 0;
  const alive = workers(world, now).filter((worker) => worker.alive);
  for (const row of world.tables.rows.values()) {
    states[row.job.state] = (states[row.job.state] ?? 0) + 1;
    if (needsYouOf(world, row) !== null) needs += 1;
    contradictions += contradictionsOf(world, row);
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
    return structuredClone({
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
    structuredClone({
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
  const testimony = testimonyOf(world, id);
  return structuredClone({ job, payload: payloadOf(world, id), chain, texts, testimony });
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
    claimer: definitions.find((definition) => definition.kind === kind) ?? null,
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
