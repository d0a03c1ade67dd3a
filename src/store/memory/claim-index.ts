/** Finds claimable, waiting and overdue jobs in O(log n); it holds no truth and can be built again from the rows. */
import {
  type Job,
  laneOf,
  STATE,
  scheduleIsDue,
  stateAwaitsWorker,
  stateIsTerminal,
  tokenTakesOldest,
} from '../../core/index.ts';
import type { Row } from '../session.ts';
import { Heap } from './heap.ts';

interface Ready {
  readonly id: number;
  readonly priority: number;
}

interface Timed {
  readonly id: number;
  readonly at: number;
}

/** Jobs of one queue, kind and revision; internal ones apart, since a pause does not hold them. */
export interface Route {
  readonly queue: string;
  readonly kind: string;
  readonly revision: number;
  readonly internal: boolean;
  readonly byPriority: Heap<Ready>;
  readonly byAge: Heap<Ready>;
}

const earlier = (a: Timed, b: Timed): boolean => a.at < b.at || (a.at === b.at && a.id < b.id);
const older = (a: Ready, b: Ready): boolean => a.id < b.id;
const preferred = (a: Ready, b: Ready): boolean =>
  a.priority > b.priority || (a.priority === b.priority && a.id < b.id);

/** Heaps over the live rows. Items go stale when their job moves on and are dropped when they come to the top. */
export class ClaimIndex {
  readonly #rowOf: (id: number) => Row | undefined;
  #routes = new Map<string, Route>();
  #lanes = new Map<string, Heap<number>>();
  #waiting = new Heap<Timed>(earlier);
  #overdue = new Heap<Timed>(earlier);
  #unresolved = new Map<string, number>();
  #held = new Map<string, Set<number>>();

  constructor(rowOf: (id: number) => Row | undefined) {
    this.#rowOf = rowOf;
  }

  /** Starts over from the rows: after a rollback, and after a restore. */
  rebuild(rows: Iterable<Row>): void {
    this.#routes = new Map();
    this.#lanes = new Map();
    this.#waiting = new Heap<Timed>(earlier);
    this.#overdue = new Heap<Timed>(earlier);
    this.#unresolved = new Map();
    this.#held = new Map();
    const live = [...rows].filter((row) => !stateIsTerminal(row.job.state));
    for (const { job } of live) this.#enterLane(job);
    for (const row of live) {
      this.#count(row.job, 1);
      this.#hold(row);
      this.#enter(row.job);
    }
  }

  /** Takes note of a row that was written. */
  moved(before: Row | undefined, after: Row): void {
    const wasLive = before !== undefined && !stateIsTerminal(before.job.state);
    const isLive = !stateIsTerminal(after.job.state);
    if (before?.claimRequestId != null) this.#held.get(before.claimRequestId)?.delete(before.job.id);
    if (!wasLive && isLive) {
      this.#enterLane(after.job);
      this.#count(after.job, 1);
    }
    if (isLive) {
      this.#hold(after);
      this.#enter(after.job);
    }
    if (wasLive && !isLive) {
      this.#count(after.job, -1);
      const successor = this.#headOf(after.job);
      if (successor !== null) this.#enter(successor);
    }
  }

  /** Unresolved jobs of a queue that count against its bound. */
  unresolved(queue: string): number {
    return this.#unresolved.get(queue) ?? 0;
  }

  /** Ids held under leases given by this claim request. */
  heldBy(requestId: string): readonly number[] {
    const held = this.#held.get(requestId);
    if (held === undefined) return [];
    if (held.size === 0) this.#held.delete(requestId);
    return [...held];
  }

  isHead(job: Job): boolean {
    return (
      laneOf(job.submission.queue, job.submission.orderingKey) === null || this.#headOf(job)?.id === job.id
    );
  }

  /** The oldest unresolved job of the job's lane, null when it has none. */
  headOf(job: Job): Job | null {
    return this.#headOf(job);
  }

  /** The earliest overdue job at `now`, or null; ask again after it was lapsed. */
  nextOverdue(now: number): Row | null {
    for (;;) {
      const item = this.#overdue.peek();
      if (item === undefined || item.at > now) return null;
      const row = this.#rowOf(item.id);
      const at = row === undefined ? null : lapseAt(row.job);
      if (row !== undefined && at !== null && at <= now) return row;
      this.#overdue.pop();
    }
  }

  /** The job a token takes at `now` among the routes `permitted` accepts, or null. */
  pick(now: number, token: number, permitted: (route: Route) => boolean): Row | null {
    this.#ripen(now);
    const oldestFirst = tokenTakesOldest(token);
    const better = oldestFirst ? older : preferred;
    let best: Ready | null = null;
    for (const route of this.#routes.values()) {
      if (!permitted(route)) continue;
      const top = this.#top(oldestFirst ? route.byAge : route.byPriority, now);
      if (top !== null && (best === null || better(top, best))) best = top;
    }
    return best === null ? null : (this.#rowOf(best.id) ?? null);
  }

  #top(heap: Heap<Ready>, now: number): Ready | null {
    for (;;) {
      const item = heap.peek();
      if (item === undefined) return null;
      const job = this.#rowOf(item.id)?.job;
      if (job !== undefined && stateAwaitsWorker(job.state) && this.isHead(job)) {
        if (job.state === STATE.PENDING || scheduleIsDue(now, job.startAt)) return item;
        // Due before the clock was followed back, and not any more.
        this.#waiting.push({ id: job.id, at: job.startAt });
      }
      heap.pop();
    }
  }

  #ripen(now: number): void {
    for (;;) {
      const item = this.#waiting.peek();
      if (item === undefined || item.at > now) return;
      this.#waiting.pop();
      const job = this.#rowOf(item.id)?.job;
      if (job?.state === STATE.SCHEDULED && scheduleIsDue(now, job.startAt)) this.#ready(job);
    }
  }

  #enter(job: Job): void {
    const at = lapseAt(job);
    if (at !== null) this.#overdue.push({ id: job.id, at });
    if (!stateAwaitsWorker(job.state) || !this.isHead(job)) return;
    if (job.state === STATE.PENDING) this.#ready(job);
    else this.#waiting.push({ id: job.id, at: job.startAt });
  }

  #ready(job: Job): void {
    const { queue, kind, revision, priority } = job.submission;
    const internal = job.submission.internal !== null;
    const name = JSON.stringify([queue, kind, revision, internal]);
    let route = this.#routes.get(name);
    if (route === undefined) {
      const byPriority = new Heap<Ready>(preferred);
      route = { queue, kind, revision, internal, byPriority, byAge: new Heap<Ready>(older) };
      this.#routes.set(name, route);
    }
    route.byPriority.push({ id: job.id, priority });
    route.byAge.push({ id: job.id, priority });
  }

  #enterLane(job: Job): void {
    const lane = laneOf(job.submission.queue, job.submission.orderingKey);
    if (lane === null) return;
    const ids = this.#lanes.get(lane) ?? new Heap<number>((a, b) => a < b);
    ids.push(job.id);
    this.#lanes.set(lane, ids);
  }

  #headOf(job: Job): Job | null {
    const lane = laneOf(job.submission.queue, job.submission.orderingKey);
    const ids = lane === null ? undefined : this.#lanes.get(lane);
    if (lane === null || ids === undefined) return null;
    for (;;) {
      const id = ids.peek();
      if (id === undefined) {
        this.#lanes.delete(lane);
        return null;
      }
      const head = this.#rowOf(id)?.job;
      if (head !== undefined && !stateIsTerminal(head.state)) return head;
      ids.pop();
    }
  }

  #count(job: Job, by: 1 | -1): void {
    if (job.submission.internal !== null) return;
    this.#unresolved.set(job.submission.queue, this.unresolved(job.submission.queue) + by);
  }

  #hold(row: Row): void {
    if (row.claimRequestId === null) return;
    const held = this.#held.get(row.claimRequestId) ?? new Set<number>();
    held.add(row.job.id);
    this.#held.set(row.claimRequestId, held);
  }
}

/** When time will change this job, null for never. */
function lapseAt(job: Job): number | null {
  if (job.state === STATE.UNCERTAIN || stateIsTerminal(job.state)) return null;
  const { deadline } = job.submission;
  const expiresAt = job.lease?.expiresAt ?? null;
  if (deadline === null || expiresAt === null) return deadline ?? expiresAt;
  return Math.min(deadline, expiresAt);
}
