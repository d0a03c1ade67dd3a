/** The selection of work against the reference rule, over stores full of lanes, priorities, routes and waiting jobs. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lapse } from '../../src/core/index.ts';
import { claimableOf, takenBy } from './audit-selection.ts';
import { type Backend, runsOf } from './backend.ts';
import { BY } from './perform-operator.ts';
import { definitionsOf } from './perform-worker.ts';
import { QUEUES, readViews, World } from './world.ts';

/** One round: some of what is held ends, time passes, a queue is paused or not, and somebody claims. */
interface Round {
  readonly end: number;
  readonly passMs: number;
  readonly pause: number | null;
  readonly max: number;
  readonly knows: 'all' | 'old' | 'one';
  readonly queue: number | null;
}

const waiting = fc.record({
  kind: fc.constantFrom('k0', 'k1'),
  revision: fc.constantFrom(1, 2),
  queue: fc.constantFrom(...QUEUES),
  orderingKey: fc.constantFrom(null, 'a', 'b', 'c'),
  priority: fc.integer({ min: -3, max: 3 }),
  delayMs: fc.constantFrom(0, 0, 0, 10, 30),
  idempotent: fc.boolean(),
});

const round = fc.record<Round>({
  end: fc.nat({ max: 5 }),
  passMs: fc.constantFrom(0, 1, 10, 20, 200),
  pause: fc.constantFrom(null, null, 0, 1),
  max: fc.constantFrom(1, 1, 2, 7),
  knows: fc.constantFrom('all', 'all', 'old', 'one'),
  queue: fc.constantFrom(null, null, 0, 1),
});

async function runRounds(backend: Backend, jobs: readonly object[], rounds: readonly Round[]): Promise<void> {
  const world = await World.open(backend);
  const { store } = world.opened;
  try {
    await store.enqueue(
      jobs.map((job) => ({ kind: 'k0', revision: 1, idempotent: true, payload: null, ...job })),
    );
    for (const one of rounds) await runRound(world, one);
  } finally {
    await world.opened.close();
  }
}

async function runRound(world: World, one: Round): Promise<void> {
  const { store } = world.opened;
  const held = [...(await readViews(store)).values()]
    .filter(({ job }) => job.lease !== null)
    .slice(0, one.end);
  const ends = held.map(({ job: { id, token } }) => ({
    id,
    token,
    worker: 'ann',
    outcome: 'succeeded' as const,
  }));
  await store.settle(ends);
  world.clock.advance(one.passMs);
  const paused = new Set(QUEUES.filter((_queue, index) => index === one.pause));
  for (const queue of QUEUES) await (paused.has(queue) ? store.pause(queue, BY) : store.resume(queue, BY));
  const now = world.now();
  const before = [...(await readViews(store)).values()].map(({ job }) => lapse(job, now).job);
  const request = {
    worker: 'ann',
    leaseMs: 100,
    max: one.max,
    requestId: `claim-${world.serial()}`,
    definitions: definitionsOf(one.knows),
    queues: one.queue === null ? null : [QUEUES[one.queue] ?? QUEUES[0]],
    begin: true,
  };
  const claimable = claimableOf(before, request, paused, now);
  const taken = (await store.claim(request)).map(({ job: { id, token } }) => ({ id, token }));
  expect(taken).toHaveLength(Math.min(one.max, claimable.length));
  expect(taken.map(({ id }) => id)).toEqual(
    takenBy(
      claimable,
      taken.map(({ token }) => token),
    ).ids,
  );
}

/** The selection of a store is the rule of `core/ordering.ts`. */
export function selectionSuite(backend: Backend): void {
  describe(`${backend.name}: selection of work`, () => {
    it('takes no job but the one that the reference rule takes over all jobs as read', {
      timeout: 600_000,
    }, async () => {
      const jobs = fc.array(waiting, { minLength: 1, maxLength: 40, size: 'max' });
      const rounds = fc.array(round, { minLength: 1, maxLength: 25, size: 'max' });
      await fc.assert(
        fc.asyncProperty(jobs, rounds, (some, many) => runRounds(backend, some, many)),
        { numRuns: runsOf(backend, 60) },
      );
    });
  });
}
