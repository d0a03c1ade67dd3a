/** What operators, maintenance and time do to a store. */
import { type Job, STATE, stateAwaitsWorker, stateIsTerminal } from '../../src/core/index.ts';
import type { By, OperatorRequest, ReconcileRequest, Store } from '../../src/store/store.ts';
import { codeOf } from '../../src/testing/conformance/check.ts';
import type { Action, Aim } from './actions.ts';
import { definitionsOf } from './perform-worker.ts';
import type { Call } from './step.ts';
import { at, QUEUES, type World } from './world.ts';

type Of<Name extends Action['do']> = Extract<Action, { readonly do: Name }>;

export const BY: By = { actor: 'olga', reason: 'on call' };
const NOBODY = 9_000_000_000_000_000;

/** The job an operator means, where it is one the act may fit. */
function aimed(
  world: World,
  aim: Aim,
  fits: (job: Job) => boolean,
): OperatorRequest & { readonly job: Job | null } {
  const jobs = aim.fit === 'fit' ? world.jobs.filter(fits) : world.jobs;
  const job = (aim.fit === 'none' ? undefined : at(jobs, aim.pick)) ?? null;
  const version = { none: null, right: job?.version ?? 0, wrong: (job?.version ?? 0) + 1 }[aim.version];
  return { id: job?.id ?? NOBODY, by: BY, version, job };
}

export async function operate(world: World, action: Of<'cancel' | 'promote' | 'dismiss'>): Promise<Call> {
  const fits = {
    cancel: (job: Job) => !stateIsTerminal(job.state),
    promote: (job: Job) => job.state === STATE.SCHEDULED,
    dismiss: (job: Job) => stateIsTerminal(job.state),
  };
  const { job: _job, ...request } = aimed(world, action.aim, fits[action.do]);
  return { verb: action.do, request, verdict: await world.store[action.do](request) };
}

export async function decide(world: World, action: Of<'decide'>): Promise<Call> {
  const { job, ...aim } = aimed(world, action.aim, ({ state }) => state === STATE.UNCERTAIN);
  const { tookPlace } = action;
  const request: ReconcileRequest = {
    ...aim,
    token: Math.max(1, (job?.token ?? 1) - (action.wrongToken ? 1 : 0)),
    decision: action.decision,
    steps:
      tookPlace === null
        ? null
        : (job?.openSteps ?? []).map(({ key }) => ({ key, tookPlace, result: { by: 'olga' } })),
    redrive: action.redrive ? { deadline: null } : null,
  };
  return { verb: 'reconcile', request, verdict: await world.store.reconcile(request) };
}

/** The reconciler's answer, by the worker that holds the internal job that asks. */
export async function answer(world: World, action: Of<'answer'>): Promise<Call | null> {
  const worker = world.worker(action.worker);
  const links = [...worker.held, ...worker.ghosts].flatMap((held) => {
    const link = world.views.get(held.id)?.job.submission.internal;
    return link?.purpose === 'reconcile' ? [{ held, link }] : [];
  });
  const asking = at(links, action.pick);
  if (asking === undefined) return null;
  const request: ReconcileRequest = {
    id: asking.link.parentId,
    token: asking.link.parentToken,
    decision: action.decision,
    by: { actor: 'reconciler', role: 'reconciler' },
    internal: { ...asking.held, worker: worker.name },
  };
  return { verb: 'reconcile', request, verdict: await world.store.reconcile(request) };
}

export async function redrive(world: World, action: Of<'redrive'>): Promise<Call> {
  const fits = ({ state }: Job): boolean => stateIsTerminal(state) && state !== STATE.SUCCEEDED;
  const { job: _job, ...aim } = aimed(world, action.aim, fits);
  const deadline = action.deadlineIn === null ? null : world.now() + action.deadlineIn;
  const request = { ...aim, deadline, dryRun: action.dryRun };
  return { verb: 'redrive', request, verdict: await world.store.redrive(request) };
}

export async function ofQueue(world: World, action: Of<'pause' | 'resume' | 'configure'>): Promise<Call> {
  // A pause tells most where something is claimed and not begun yet.
  const leased = world.jobs
    .filter(({ state }) => state === STATE.LEASED)
    .map(({ submission }) => submission.queue);
  const chosen =
    action.do === 'pause'
      ? at(
          QUEUES.filter((name) => leased.includes(name)),
          action.queue,
        )
      : null;
  const queue = chosen ?? QUEUES[action.queue] ?? QUEUES[0];
  if (action.do === 'configure') {
    await world.store.configure(queue, { maxUnresolved: action.bound }, BY);
    return { verb: 'configure', queue, bound: action.bound };
  }
  await world.store[action.do](queue, BY);
  return { verb: action.do, queue };
}

export async function prune(world: World, action: Of<'prune'>): Promise<Call> {
  const { afterMs, undismissed, limit } = action;
  const request = {
    by: BY,
    succeededAfterMs: afterMs,
    cancelledAfterMs: afterMs,
    failedAfterMs: afterMs,
    undismissed,
    limit,
  };
  return { verb: 'prune', request, pruned: await world.store.prune(request) };
}

export async function lapse(world: World, limit: number): Promise<Call> {
  return { verb: 'lapse', limit, ...(await world.store.lapse(limit)) };
}

/** Moves the clock to the next tick that matters, or to one short of it. */
export function passTo(world: World, action: Of<'pass_to'>): void {
  const reading = world.clock.now();
  const ticks = world.jobs.flatMap((job) => {
    if (stateIsTerminal(job.state)) return [];
    const starts = stateAwaitsWorker(job.state) ? [job.startAt] : [];
    return [...starts, job.lease?.expiresAt ?? 0, job.submission.deadline ?? 0];
  });
  const ahead = [...new Set(ticks.filter((tick) => tick > reading))].sort((a, b) => a - b);
  const next = at(ahead.slice(0, 3), action.pick);
  if (next !== undefined) world.clock.set(next - (action.short ? 1 : 0));
}

/** Sets the clock back, between two commits that let the store notice. */
export async function back(world: World, ms: number): Promise<Call> {
  world.floor = world.now();
  const { floor } = world;
  await world.store.configure('clock', { maxUnresolved: null }, BY);
  world.clock.set(Math.max(0, world.clock.now() - ms));
  await world.store.configure('clock', { maxUnresolved: null }, BY);
  const seen = (await world.store.acts()).at(-1)?.tick ?? -1;
  const reading = world.clock.now();
  world.floor = world.now();
  return { verb: 'clock', floor, reading, seen };
}

/** Goes on in another store, or in the same one after a restart. */
export async function move(world: World, as: Of<'move'>['as']): Promise<Call> {
  if (as === 'reopen') {
    world.opened = await world.opened.reopen();
    return { verb: 'move', as };
  }
  const text = JSON.stringify(await world.store.snapshot());
  const fresh = await world.opened.fresh();
  await fresh.store.restore(JSON.parse(text), { as, by: BY });
  await world.opened.close();
  world.opened = fresh;
  return { verb: 'move', as };
}

const GARBAGE: Readonly<Record<string, (store: Store, id: number) => Promise<unknown>>> = {
  'a claim of nothing': (store) =>
    store.claim({ worker: 'w', leaseMs: 10, max: 0, requestId: 'r', definitions: [], begin: true }),
  'a settlement with token 0': (store, id) =>
    store.settle([{ id, token: 0, worker: 'w', outcome: 'succeeded' }]),
  'a success that is no JSON': (store, id) =>
    store.settle([{ id, token: 1, worker: 'w', outcome: 'succeeded', report: '{' }]),
  'an extension by nothing': (store, id) => store.extend([{ id, token: 1, extendMs: 0 }]),
  'a payload that JSON cannot hold': (store) =>
    store.enqueue([{ kind: 'k0', revision: 1, payload: { a: Number.NaN }, idempotent: true }]),
  'a key that is reserved': (store) =>
    store.enqueue([
      { kind: 'k0', revision: 1, payload: 1, idempotent: true, idempotencyKey: 'custody:1:1:reconcile' },
    ]),
  'an id that is no number': (store) => store.cancel({ id: Number.NaN, by: BY }),
  'an act by nobody': (store, id) => store.cancel({ id, by: { actor: '' } }),
  'a bound below 0': (store) => store.configure('q0', { maxUnresolved: -1 }, BY),
  'a lapse of no jobs': (store) => store.lapse(0),
};

/** Gives a verb what no verb may take. */
export async function garbage(world: World, pick: number): Promise<Call> {
  const what = at(Object.keys(GARBAGE), pick) ?? '';
  const id = at([...world.views.keys()], pick) ?? 1;
  try {
    await GARBAGE[what]?.(world.store, id);
    return { verb: 'garbage', what, code: null };
  } catch (error) {
    return { verb: 'garbage', what, code: codeOf(error) };
  }
}

/** Asks of every job why it is not running. */
export async function look(world: World): Promise<Call> {
  const definitions = definitionsOf('old').slice(0, 1);
  const explained = new Map<number, string>();
  for (const id of world.views.keys()) {
    const explanation = await world.store.explain(id, definitions);
    if (explanation !== null) explained.set(id, explanation.reason);
  }
  return { verb: 'look', explained, definitions };
}
