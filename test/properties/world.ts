/** The world a history runs in: one store, its clock, and workers who believe what they were last told. */
import { type Fact, type Job, type JobRequest, limits } from '../../src/core/index.ts';
import { factsOf } from '../../src/evidence/index.ts';
import type { JobEvidence, JobView, Settlement, Store } from '../../src/store/store.ts';
import { type ManualClock, manualClock, type OpenedStore } from '../../src/testing/index.ts';
import type { JobSpec } from './actions.ts';
import type { Backend } from './backend.ts';
import type { Step, Views } from './step.ts';

export const QUEUES = ['q0', 'q1'] as const;
export const KINDS = ['k0', 'k1'] as const;

/** One delivery as its worker remembers it. */
export interface Held {
  readonly id: number;
  readonly token: number;
}

/** A worker: what it thinks it holds, what it held once, and what it said last. */
export class Worker {
  readonly name: string;
  held: readonly Held[] = [];
  ghosts: readonly Held[] = [];
  said: readonly Settlement[] = [];
  claimId: string | null = null;

  constructor(name: string) {
    this.name = name;
  }

  /** Forgets one delivery, which may come back as a zombie. */
  drop(held: Held): void {
    this.held = this.held.filter((one) => one !== held);
    this.ghosts = [...this.ghosts.slice(-8), held];
  }

  crash(): void {
    this.ghosts = [...this.ghosts, ...this.held].slice(-8);
    this.held = [];
    this.claimId = null;
  }
}

export class World {
  readonly backend: Backend;
  readonly clock: ManualClock;
  opened: OpenedStore;
  /** The tick below which the store's clock was not seen to go. */
  floor: number;
  views: Views = new Map();
  /** Of the jobs that the last observation saw changed. */
  evidence: ReadonlyMap<number, JobEvidence> = new Map();
  facts: ReadonlyMap<number, readonly Fact[]> = new Map();
  readonly workers: readonly Worker[] = ['ann', 'bob', 'cyd'].map((name) => new Worker(name));
  asked: readonly JobRequest[] = [];
  #texts: ReadonlyMap<number, string> = new Map();
  #serial = 0;

  private constructor(backend: Backend, clock: ManualClock, opened: OpenedStore) {
    this.backend = backend;
    this.clock = clock;
    this.opened = opened;
    this.floor = clock.now();
  }

  static async open(backend: Backend): Promise<World> {
    const clock = manualClock(1_000_000);
    return new World(backend, clock, await backend.open(clock));
  }

  get store(): Store {
    return this.opened.store;
  }

  get jobs(): readonly Job[] {
    return [...this.views.values()].map(({ job }) => job);
  }

  /** The clock as the store must read it: held at its floor within the tolerance, followed beyond. */
  now(): number {
    const reading = this.clock.now();
    const held = reading < this.floor && this.floor - reading <= limits.clockToleranceMs;
    return held ? this.floor : reading;
  }

  worker(index: number): Worker {
    return at(this.workers, index) as Worker;
  }

  serial(): number {
    this.#serial += 1;
    return this.#serial;
  }

  /** Reads every job, and the evidence of those that changed; what did not change stays the same object. */
  async observe(): Promise<Pick<Step, 'recorded' | 'rewritten'>> {
    const before = this.views;
    const views = new Map<number, JobView>();
    const texts = new Map<number, string>();
    const evidence = new Map<number, JobEvidence>();
    const facts = new Map<number, readonly Fact[]>();
    const recorded = new Map<number, readonly Fact[]>();
    const rewritten = new Set<number>();
    for (const [id, view] of await readViews(this.store)) {
      const text = JSON.stringify(view);
      const known = this.#texts.get(id) === text ? before.get(id) : undefined;
      views.set(id, known ?? view);
      texts.set(id, text);
      const earlier = this.facts.get(id) ?? [];
      facts.set(id, earlier);
      if (known !== undefined) continue;
      const read = await this.store.evidence(id);
      if (read === null) throw new Error(`job ${id} is found and has no evidence`);
      const all = factsOf(read.chain);
      evidence.set(id, read);
      facts.set(id, all);
      if (before.get(id)?.job.version !== view.job.version) recorded.set(id, all.slice(earlier.length));
      if (JSON.stringify(all.slice(0, earlier.length)) !== JSON.stringify(earlier)) rewritten.add(id);
    }
    this.views = views;
    this.#texts = texts;
    this.evidence = evidence;
    this.facts = facts;
    return { recorded, rewritten };
  }
}

/** All jobs, internal ones included. */
export async function readViews(store: Store): Promise<Views> {
  const views = new Map<number, JobView>();
  for (let afterId: number | null = 0; afterId !== null; ) {
    const page: Awaited<ReturnType<Store['find']>> = await store.find({
      internal: true,
      afterId,
      limit: limits.findPageMax,
    });
    for (const view of page.jobs) views.set(view.job.id, view);
    afterId = page.nextAfterId;
  }
  return views;
}

/** The member that a number picks, or undefined of nothing. */
export function at<Member>(members: readonly Member[], pick: number): Member | undefined {
  return members[pick % members.length];
}

/** The request that a spec stands for, at `now`. */
export function requestOf(spec: JobSpec, now: number): JobRequest {
  const orderingKey = spec.lane === 0 ? null : `lane-${spec.lane}`;
  return {
    kind: KINDS[spec.kind] ?? KINDS[0],
    revision: spec.revision,
    queue: QUEUES[spec.queue] ?? QUEUES[0],
    payload: { content: spec.content },
    idempotent: spec.idempotent,
    orderingKey,
    idempotencyKey: spec.key === null ? null : `key-${spec.key}`,
    requestId: spec.requestId === null ? null : `request-${spec.requestId}`,
    priority: spec.priority,
    delayMs: spec.delayMs,
    deadline: spec.deadlineIn === null ? null : now + spec.deadlineIn,
    maxAttempts: spec.maxAttempts,
    backoffBaseMs: spec.backoffBaseMs,
    backoffMaxMs: spec.backoffMaxMs,
    reconcileAfterMs: spec.reconcileAfterMs,
    acceptLateReports: spec.acceptLateReports,
    reconciles: spec.reconciles,
    compensates: spec.compensates,
    requiresEffect: spec.requiresEffect ? 'effect-0' : null,
    recurrence:
      spec.intervalMs === null || orderingKey !== null
        ? null
        : { intervalMs: spec.intervalMs, maxOccurrences: 3, maxCatchUp: 2 },
  };
}
