/** Runs one handler for one attempt of a job with a past: what a handler does the third time can be tested the first time. */
import { canonicalJson, type Job, limits, type Outcome, retryBackoffTicks } from '../core/index.ts';
import { Attempt } from '../runtime/attempt.ts';
import { openCustody } from '../runtime/custody.ts';
import type { JobDefinition, PayloadOf } from '../runtime/definition.ts';
import type { StandardSchema } from '../runtime/standard-schema.ts';
import { InvalidInputError } from '../store/errors.ts';
import { openMemoryStore } from '../store/memory/index.ts';
import type { ApplicationState, ClaimRequest, Delivery } from '../store/store.ts';
import { simulatedClock } from './simulated-clock.ts';

/** How an earlier delivery ended: by a report that lets the job go on, or `lost` with its worker. */
export type PastDelivery = Extract<Outcome, 'retryable' | 'snoozed' | 'interrupted'> | 'lost';

export interface RunOnceOptions {
  /** Deliveries before this one, oldest first. A lost one is only possible when the job is idempotent. Default none. */
  readonly history?: readonly PastDelivery[];
  /** Effects that earlier deliveries committed: results by key, with the descriptor they were committed under. */
  readonly committed?: Readonly<Record<string, { readonly descriptor: unknown; readonly result: unknown }>>;
  /** The program's state in the store at the start. */
  readonly application?: ApplicationState;
  readonly idempotencyKey?: string;
}

/** How the one attempt ended. */
export interface RanOnce {
  /** What was settled; null when it was decided in another commit. */
  readonly outcome: Outcome | null;
  /** What the handler returned, when it succeeded. */
  readonly result: unknown;
  /** Why, when it did not. */
  readonly reason: string | null;
  /** The job afterwards. */
  readonly job: Job;
  /** The program's state afterwards. */
  readonly application: ApplicationState;
}

const WORKER = 'run-once';

/**
 * Runs the handler once in a store of its own, on a simulated clock that stands still while it runs. The attempt it sees
 * is one more than the retryable and lost deliveries of its history.
 *
 * @example
 * ```ts
 * const { outcome, job } = await runOnce(charge, { account: 'alice', cents: 700 }, { history: ['retryable', 'lost'] });
 * ```
 */
export async function runOnce<Schema extends StandardSchema, Result>(
  definition: JobDefinition<Schema, Result>,
  payload: PayloadOf<JobDefinition<Schema, Result>>,
  options: RunOnceOptions = {},
): Promise<RanOnce> {
  const time = simulatedClock();
  let ids = 0;
  const randomId = (): string => `id-${++ids}`;
  const { history = [], committed = {}, application = {}, idempotencyKey } = options;
  const store = openMemoryStore({ clock: () => time.now(), clockName: 'simulated', randomId, application });
  const custody = await openCustody(store, { time, randomId });
  const { id } = await custody.enqueue(
    definition,
    payload,
    idempotencyKey === undefined ? {} : { idempotencyKey },
  );
  const { kind, revision, idempotent } = definition;
  const claim = async (): Promise<Delivery> => {
    const request: ClaimRequest = {
      worker: WORKER,
      leaseMs: limits.leaseMsDefault,
      max: 1,
      requestId: randomId(),
      definitions: [{ kind, revision, idempotent }],
      begin: true,
    };
    const [delivery] = await store.claim(request);
    if (delivery !== undefined) return delivery;
    const ended = (await store.get(id))?.job.cause ?? 'nothing';
    throw new InvalidInputError('history', `leaves nothing to run: the job stands where "${ended}" left it`);
  };
  for (const [index, past] of history.entries()) {
    const { job } = await claim();
    const holder = { id, token: job.token };
    if (index === 0) {
      for (const [key, { descriptor, result }] of Object.entries(committed)) {
        await store.transact(holder, (tx) => tx.commitEffect(key, descriptor, () => result));
      }
    }
    await endDelivery(past, job);
  }
  if (history.length === 0 && Object.keys(committed).length > 0) {
    throw new InvalidInputError('committed', 'needs a delivery in history that committed it');
  }
  const delivery = await claim();
  const trustedUntil = { monotonic: Number.POSITIVE_INFINITY, wall: Number.POSITIVE_INFINITY };
  const host = { store, time, worker: WORKER, log: () => undefined };
  const attempt = new Attempt(delivery, definition, host, trustedUntil);
  attempt.start();
  const ended = await attempt.ended;
  if (ended !== 'decided') await store.settle([{ ...attempt.holder, worker: WORKER, ...ended }]);
  const job = (await store.get(id))?.job ?? delivery.job;
  const report = ended === 'decided' ? null : (ended.report ?? null);
  const outcome = ended === 'decided' ? null : ended.outcome;
  const succeeded = outcome === 'succeeded';
  const result: unknown = succeeded ? JSON.parse(report ?? 'null') : null;
  await custody.close();
  return { outcome, result, reason: succeeded ? null : report, job, application: store.application() };

  /** Ends an earlier delivery and moves on to when the next can start. */
  async function endDelivery(past: PastDelivery, job: Job): Promise<void> {
    if (past === 'lost') {
      await time.advance(limits.leaseMsDefault);
      return;
    }
    const until = past === 'snoozed' ? time.now() + 1 : null;
    const report = `earlier delivery: ${past}`;
    await store.settle([{ id, token: job.token, worker: WORKER, outcome: past, report, until }]);
    const { backoffBaseMs, backoffMaxMs } = job.submission;
    const waitMs = past === 'retryable' ? retryBackoffTicks(job.attempt - 1, backoffBaseMs, backoffMaxMs) : 1;
    await time.advance(waitMs === 'tick_overflow' ? backoffMaxMs : waitMs);
  }
}

/** Whether a JSON value has everything that `expected` has, lists member by member. */
export function contains(actual: unknown, expected: unknown): boolean {
  if (typeof expected !== 'object' || expected === null) return Object.is(actual, expected);
  if (typeof actual !== 'object' || actual === null) return false;
  if (Array.isArray(expected)) {
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((one: unknown, index) => contains(actual[index], one))
    );
  }
  return Object.entries(expected).every(
    ([name, one]) => Object.hasOwn(actual, name) && contains(Reflect.get(actual, name), one),
  );
}

/** A value as a message shows it. */
export function shown(value: unknown): string {
  const canonical = canonicalJson(value, { maxDepth: limits.payloadDepthMax, maxBytes: 10_000 });
  return canonical.ok ? canonical.text : '(something that has no JSON)';
}
