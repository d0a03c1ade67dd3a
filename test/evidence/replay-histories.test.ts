import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  appendFacts,
  FACT_TYPES,
  factsOf,
  newChain,
  readJob,
  replay,
  verifyJob,
} from '../../src/evidence/index.ts';
import { moves, PAYLOAD, play, submissions, withoutHeartbeats } from './histories.ts';

test('every history that decide makes replays to the job it left, after every move and across clock corrections', {
  timeout: 60_000,
}, () => {
  const types = new Set<string>();
  let corrections = 0;
  fc.assert(
    fc.property(submissions, moves, (submission, played) => {
      const standings = play(submission, played);
      for (const { job, facts } of standings) {
        const replayed = replay(7, submission, facts);
        expect(replayed.ok ? withoutHeartbeats(replayed.job) : replayed).toEqual(withoutHeartbeats(job));
      }
      for (const { type } of standings.at(-1)?.facts ?? []) types.add(type);
      corrections += standings.at(-1)?.corrections ?? 0;
    }),
    { numRuns: 1000, seed: 20_260_101 },
  );
  expect([...types].sort()).toEqual([...FACT_TYPES].sort());
  expect(corrections).toBeGreaterThan(100);
});

test('a job that decide made reads back equal, verifies from its chain, and is told decision by decision', {
  timeout: 60_000,
}, () => {
  fc.assert(
    fc.property(submissions, moves, (submission, played) => {
      const standings = play(submission, played);
      const byVersion = new Map(standings.map(({ job }) => [job.version, withoutHeartbeats(job)]));
      for (const { job, chain } of standings) {
        expect(readJob(JSON.parse(JSON.stringify(job)))).toEqual({ ok: true, value: job });
        expect(verifyJob({ job, payload: PAYLOAD, chain })).toMatchObject({ ok: true, faults: [] });
      }
      const { chain, facts } = standings.at(-1) ?? { chain: newChain(submission), facts: [] };
      expect(factsOf(chain)).toEqual(facts);
      expect(appendFacts(newChain(submission), facts)).toEqual(chain);
      let told = 0;
      replay(7, submission, facts, (job, lastFact) => {
        told++;
        expect(job.version).toBe(lastFact + 1);
        // A lapse and the command behind it are one decision of the store and two of the history.
        const alike = withoutHeartbeats(job);
        expect(alike).toEqual(byVersion.get(job.version) ?? alike);
      });
      expect(told).toBeGreaterThanOrEqual(byVersion.size - 1);
    }),
    { numRuns: 60 },
  );
});

test('a history with a fact dropped or doubled does not lead to the same job, and swapped ones not to its root', {
  timeout: 60_000,
}, () => {
  fc.assert(
    fc.property(submissions, moves, fc.nat(), (submission, played, choice) => {
      const { job, facts, chain } = play(submission, played).at(-1) ?? {};
      if (job === undefined || facts === undefined || chain === undefined || facts.length < 2) return;
      const at = choice % (facts.length - 1);
      const [fact, next] = facts.slice(at, at + 2);
      if (fact === undefined || next === undefined) return;
      for (const forged of [facts.toSpliced(at, 1), facts.toSpliced(at, 0, fact)]) {
        const replayed = replay(7, submission, forged);
        expect(replayed.ok && withoutHeartbeats(replayed.job)).not.toEqual(withoutHeartbeats(job));
      }
      const swapped = appendFacts(newChain(submission), facts.toSpliced(at, 2, next, fact));
      const forged = { ...swapped, root: chain.root };
      const changed = at + 1 < chain.entries.length && JSON.stringify(fact) !== JSON.stringify(next);
      expect(changed && verifyJob({ job, payload: PAYLOAD, chain: forged }).ok).toBe(false);
    }),
    { numRuns: 500 },
  );
});
