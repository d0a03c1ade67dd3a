/** Works off everything that can be worked off now: a test waits for an end that is certain, and for no moment. */
import { STATE } from '../core/index.ts';
import type { Custody } from '../runtime/custody.ts';
import type { AnyDefinition } from '../runtime/definition.ts';
import type { WorkerStats } from '../runtime/worker.ts';
import type { SimulatedClock } from './simulated-clock.ts';

export interface DrainOptions {
  /** Jobs at one time, default 10. */
  readonly concurrency?: number;
  /**
   * The clock of a simulation. With it drain goes on to retries, snoozes, delayed jobs and reconcilers that lie ahead;
   * without it only to what is due.
   */
  readonly time?: SimulatedClock;
  /** How far a simulated clock may be moved, default a day. */
  readonly withinMs?: number;
}

const LOOK_MS = 5;
const DAY_MS = 86_400_000;

/**
 * Runs a worker until nothing of these kinds is due and nothing is running, then stops it. UNCERTAIN jobs stay: nobody
 * but a reconciler or a person may decide them. A handler that never ends is waited for.
 *
 * @example
 * ```ts
 * await custody.enqueue(welcomeMail, { to: 'alice@example.org' });
 * const { settled } = await drain(custody, [welcomeMail]);
 * ```
 */
export async function drain(
  custody: Custody,
  definitions: readonly AnyDefinition[],
  options: DrainOptions = {},
): Promise<WorkerStats> {
  const { time, concurrency = 10, withinMs = DAY_MS } = options;
  const worker = custody.work(definitions, { concurrency, pollMs: time === undefined ? 10 : 1_000 });
  const pass = async (ms: number): Promise<void> => {
    if (time !== undefined) return time.advance(ms);
    return new Promise((resolve) => {
      setTimeout(resolve, ms);
    });
  };
  await pass(LOOK_MS);
  await worker.started;
  let passedMs = 0;
  while (
    (await isWork(custody, definitions, time !== undefined)) &&
    (time === undefined || passedMs < withinMs)
  ) {
    const waitMs = time === undefined || worker.stats().running > 0 ? LOOK_MS : 1_000;
    await pass(waitMs);
    passedMs += waitMs;
  }
  const stopped = worker.stop({ graceMs: 0 });
  await pass(LOOK_MS);
  await stopped;
  return worker.stats();
}

/** Whether anything runs, is due, or (`ahead`) waits for its time. */
async function isWork(
  custody: Custody,
  definitions: readonly AnyDefinition[],
  ahead: boolean,
): Promise<boolean> {
  const states = [STATE.PENDING, STATE.SCHEDULED, STATE.LEASED, STATE.RUNNING];
  const claimers = definitions.map(({ kind, revision, idempotent }) => ({ kind, revision, idempotent }));
  const kinds = definitions.map(({ kind }) => kind);
  for (let afterId: number | null = 0; afterId !== null; ) {
    const { jobs, nextAfterId } = await custody.store.find({ states, kinds, internal: true, afterId });
    for (const { job } of jobs) {
      if (job.state === STATE.LEASED || job.state === STATE.RUNNING) return true;
      const explained = await custody.store.explain(job.id, claimers);
      if (explained?.claimable === true || (ahead && explained?.reason === 'not_due')) return true;
    }
    afterId = nextAfterId;
  }
  return false;
}
