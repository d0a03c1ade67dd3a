/** What must hold in every store after anything whatever happened: checked over all jobs, whoever moved them. */
import { type Job, limits, STATE, stateHoldsLease, stateIsTerminal } from '../../core/index.ts';
import { entriesOf, verifyJob } from '../../evidence/index.ts';
import type { JobView, Store } from '../../store/store.ts';
import { check, present, same, stateName } from './check.ts';

/**
 * Reads everything the store holds and checks that its evidence verifies, that nobody shares a token or a lane, and
 * that all reads tell the same story.
 */
export async function checkStore(store: Store): Promise<void> {
  const views = await everyView(store);
  for (const view of views) checkJob(view);
  checkLeases(views);
  checkLanes(views);
  checkLinks(views);
  for (const view of views) await checkReads(store, view);
  await checkCounts(store, views);
  await checkQueues(store, views);
  await checkLaneViews(store, views);
}

/** Moves everything into an empty store, which must come to hold the same, whatever happened in the first one. */
export async function checkCopy(store: Store, empty: Store): Promise<void> {
  await empty.restore(await store.snapshot(), { as: 'copy', by: { actor: 'conformance' } });
  same(await everyView(empty), await everyView(store), 'jobs of a copy');
  await checkStore(empty);
}

/** All jobs, internal ones included, read in small pages so that paging is part of every case. */
async function everyView(store: Store): Promise<readonly JobView[]> {
  const views: JobView[] = [];
  let afterId: number | null = 0;
  while (afterId !== null) {
    const page: Awaited<ReturnType<Store['find']>> = await store.find({ internal: true, afterId, limit: 7 });
    check(page.jobs.length <= 7, 'a page must not be longer than asked for');
    views.push(...page.jobs);
    afterId = page.nextAfterId;
  }
  const ids = views.map(({ job }) => job.id);
  same(
    ids,
    [...new Set(ids)].sort((a, b) => a - b),
    'paging yields every id once and in order',
  );
  return views;
}

function checkJob({ job, payload, needsYou }: JobView): void {
  const { submission } = job;
  const label = `job ${job.id} (${stateName(job.state)})`;
  check(job.state !== STATE.RETRYABLE_FAILURE, `${label}: RETRYABLE_FAILURE must never be stored`);
  same(job.lease !== null, stateHoldsLease(job.state), `${label}: holds a lease`);
  same(job.endedAt !== null, stateIsTerminal(job.state), `${label}: has an end`);
  same(job.lease?.token ?? job.token, job.token, `${label}: token of the lease`);
  check(job.token <= limits.tokenMax && job.attempt >= 0 && job.runs >= 0, `${label}: counters in bounds`);
  check(job.delivery >= job.attempt, `${label}: no attempt without a delivery`);
  check(job.attempt <= submission.maxAttempts, `${label}: attempts within their ceiling`);
  check(job.delivery <= submission.maxDeliveries, `${label}: deliveries within their ceiling`);
  check(submission.idempotent || !job.idempotent, `${label}: a contract never becomes weaker`);
  if (job.state === STATE.UNCERTAIN) same(needsYou, 'uncertain', `${label}: needs you`);
  if (submission.internal !== null) {
    same(submission.orderingKey, null, `${label}: an internal job has no lane`);
    same(submission.deadline, null, `${label}: an internal job has no deadline`);
    check(job.idempotent, `${label}: an internal job is idempotent`);
  }
  check(payload.length > 0, `${label}: has its payload`);
}

function checkLeases(views: readonly JobView[]): void {
  const tokens = views.map(({ job }) => job.token).filter((token) => token > 0);
  same(tokens.length, new Set(tokens).size, 'no token was granted for two jobs');
}

/** Who works on a lane is its oldest unresolved job, so at most one does. */
function checkLanes(views: readonly JobView[]): void {
  for (const [lane, jobs] of lanesOf(views)) {
    for (const job of jobs.slice(1)) {
      const moved = stateHoldsLease(job.state) || job.state === STATE.UNCERTAIN;
      check(!moved, `lane ${lane}: job ${job.id} is ${stateName(job.state)} behind job ${jobs[0]?.id}`);
    }
  }
}

function lanesOf(views: readonly JobView[]): ReadonlyMap<string, readonly Job[]> {
  const lanes = new Map<string, Job[]>();
  for (const { job } of views) {
    const { queue, orderingKey } = job.submission;
    if (orderingKey === null || stateIsTerminal(job.state)) continue;
    const lane = JSON.stringify([queue, orderingKey]);
    lanes.set(lane, [...(lanes.get(lane) ?? []), job]);
  }
  return lanes;
}

function checkLinks(views: readonly JobView[]): void {
  const byId = new Map(views.map((view) => [view.job.id, view]));
  for (const { job, redrivenTo } of views) {
    const from = job.submission.inherited?.fromId ?? null;
    const origin = from === null ? undefined : byId.get(from);
    if (origin !== undefined && origin.redrivenTo !== null) {
      same(origin.redrivenTo, job.id, `job ${from}: link to the job made from it`);
    }
    const made = redrivenTo === null ? undefined : byId.get(redrivenTo);
    if (made !== undefined)
      same(made.job.submission.inherited?.fromId, job.id, `job ${redrivenTo}: link back`);
    if (redrivenTo !== null) check(stateIsTerminal(job.state), `job ${job.id}: redriven before it had ended`);
  }
  const keys = views.map(({ job }) => job.submission.idempotencyKey).filter((key) => key !== null);
  same(keys.length, new Set(keys).size, 'no two jobs share an idempotency key');
}

async function checkReads(store: Store, view: JobView): Promise<void> {
  const { job, payload } = view;
  same(await store.get(job.id), view, `job ${job.id}: get and find agree`);
  const evidence = present(await store.evidence(job.id), `evidence of job ${job.id}`);
  same(evidence.job, job, `job ${job.id}: evidence speaks of the stored job`);
  same(evidence.payload, payload, `job ${job.id}: evidence holds the stored payload`);
  same(evidence.testimony, view.testimony, `job ${job.id}: evidence holds the testimony`);
  const { ok, faults } = verifyJob(evidence);
  check(ok, `job ${job.id}: its evidence must verify, and ${JSON.stringify(faults)}`);
  same(entriesOf(evidence.chain).length, job.version, `job ${job.id}: its version counts its entries`);
}

function tally(jobs: readonly Job[]): Readonly<Record<string, number>> {
  const states: Record<string, number> = {};
  for (const { state } of jobs) states[state] = (states[state] ?? 0) + 1;
  return states;
}

/** States that nobody is in may be left out or be 0. */
function counted(states: Readonly<Record<number, number>>): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(states).filter(([, number]) => number > 0));
}

async function checkCounts(store: Store, views: readonly JobView[]): Promise<void> {
  const counts = await store.counts();
  same(counted(counts.states), tally(views.map(({ job }) => job)), 'counts by state');
  const needing = views.filter(({ needsYou }) => needsYou !== null).map(({ job }) => job.id);
  same(counts.needsYou, needing.length, 'count of what needs you');
  const found = await store.find({ internal: true, needsYou: true, limit: limits.findPageMax });
  same(
    found.jobs.map(({ job }) => job.id),
    needing,
    'what is found as needing you',
  );
  const contradictions = views.reduce((sum, view) => sum + view.contradictions, 0);
  same(counts.contradictions, contradictions, 'count of contradictions');
}

async function checkQueues(store: Store, views: readonly JobView[]): Promise<void> {
  const queues = new Map((await store.queues()).map((queue) => [queue.queue, queue]));
  const names = new Set(views.map(({ job }) => job.submission.queue));
  for (const name of new Set([...names, ...queues.keys()])) {
    const queue = present(queues.get(name), `queue ${name} in the list of queues`);
    const jobs = views.map(({ job }) => job).filter((job) => job.submission.queue === name);
    same(counted(queue.states), tally(jobs), `queue ${name}: counts by state`);
    const counting = jobs.filter((job) => !stateIsTerminal(job.state) && job.submission.internal === null);
    same(queue.unresolved, counting.length, `queue ${name}: unresolved jobs`);
  }
}

async function checkLaneViews(store: Store, views: readonly JobView[]): Promise<void> {
  const lanes = await store.lanes(limits.findPageMax);
  const seen = lanes.map(({ queue, orderingKey, headId, headState, unresolved }) => {
    return { lane: JSON.stringify([queue, orderingKey]), headId, headState, unresolved };
  });
  const expected = [...lanesOf(views)].map(([lane, [head, ...others]]) => {
    return { lane, headId: head?.id, headState: head?.state, unresolved: others.length + 1 };
  });
  const byLane = (a: { lane: string }, b: { lane: string }): number => (a.lane < b.lane ? -1 : 1);
  same([...seen].sort(byLane), expected.sort(byLane), 'lanes with their heads');
  const lengths = lanes.map(({ unresolved }) => unresolved);
  same(
    lengths,
    [...lengths].sort((a, b) => b - a),
    'lanes come longest first',
  );
}
