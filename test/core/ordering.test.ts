/** Order: who is a lane's head, and whom a token takes; the rule that every store's own way of claiming must equal. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { initialJob, type Job } from '../../src/core/job.ts';
import {
  compareForClaim,
  laneHeads,
  laneOf,
  pickForToken,
  tokenTakesOldest,
} from '../../src/core/ordering.ts';
import { submissionOf } from '../support/job-builders.ts';

const jobOf = (id: number, changes: Parameters<typeof submissionOf>[0] = {}): Job =>
  initialJob(id, submissionOf(changes));

const jobs: fc.Arbitrary<readonly Job[]> = fc
  .uniqueArray(
    fc.record({
      id: fc.integer({ min: 1, max: 40 }),
      orderingKey: fc.constantFrom(null, 'a', 'b'),
      queue: fc.constantFrom('q', 'r'),
      priority: fc.integer({ min: -2, max: 2 }),
    }),
    { selector: ({ id }) => id, maxLength: 20 },
  )
  .map((rows) => rows.map(({ id, ...changes }) => jobOf(id, changes)));

test('two queues, two keys, and no key at all never share a lane, whatever the names are made of', () => {
  expect(laneOf('q', null)).toBeNull();
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), fc.string(), (queue, key, otherQueue, otherKey) => {
      const same = queue === otherQueue && key === otherKey;
      expect(laneOf(queue, key) === laneOf(otherQueue, otherKey)).toBe(same);
    }),
  );
  expect(laneOf('a","b', 'c')).not.toBe(laneOf('a', 'b","c'));
});

test('a lane has exactly one head, its oldest job, and a job without a lane waits for nobody', () => {
  fc.assert(
    fc.property(jobs, (all) => {
      const heads = laneHeads(all);
      const older = (job: Job) =>
        all.some(
          (other) =>
            other.id < job.id &&
            job.submission.orderingKey !== null &&
            other.submission.orderingKey === job.submission.orderingKey &&
            other.submission.queue === job.submission.queue,
        );
      expect(new Set(all.filter((job) => !older(job)).map(({ id }) => id))).toEqual(heads);
    }),
  );
});

test('one token in sixteen takes the oldest, so that no low priority starves', () => {
  const taking = Array.from({ length: 48 }, (_, index) => index + 1).filter(tokenTakesOldest);
  expect(taking).toEqual([16, 32, 48]);
  const claimable = [jobOf(5, { priority: 1_000 }), jobOf(3, { priority: -1_000 }), jobOf(4)];
  expect(pickForToken(claimable, 32)?.id).toBe(3);
  expect(pickForToken(claimable, 33)?.id).toBe(5);
});

test('a token takes the highest priority, of these the oldest, in whatever order they are looked at', () => {
  fc.assert(
    fc.property(jobs, fc.integer({ min: 1, max: 64 }), (all, token) => {
      const byAge = [...all].sort((a, b) => a.id - b.id);
      const byPriority = [...byAge].sort((a, b) => b.submission.priority - a.submission.priority);
      const expected = (token % 16 === 0 ? byAge : byPriority)[0] ?? null;
      expect(pickForToken(all, token)).toBe(expected);
      expect([...all].sort(compareForClaim)).toEqual(byPriority);
    }),
  );
});

test('nothing is taken where nothing may be claimed', () => {
  expect(pickForToken([], 1)).toBeNull();
  expect(laneHeads([]).size).toBe(0);
});
