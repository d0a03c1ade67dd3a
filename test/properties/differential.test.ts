/** One history, two stores: whatever can be observed of it is equal on both, call by call and job by job. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalJson } from '../../src/core/index.ts';
import type { Action } from './actions.ts';
import { type Backend, memoryBackend, runsOf } from './backend.ts';
import { playHistory } from './histories.ts';
import { historyOf, PROFILES } from './profiles.ts';
import { sqliteBackend } from './sqlite-backend.ts';

/** Data in its one canonical form: the order of names is no difference. */
function text(value: unknown): string {
  const plain: unknown = JSON.parse(JSON.stringify(value));
  const canonical = canonicalJson(plain, { maxDepth: 100, maxBytes: 2 ** 40 });
  if (!canonical.ok) throw new Error(`${canonical.path}: ${canonical.problem}`);
  return canonical.text;
}

/** Everything seen of a history, step by step, with lineages numbered in the order they appeared. */
async function observed(backend: Backend, history: readonly Action[]): Promise<readonly string[]> {
  const lineages = new Map<string, number>();
  const numbered = (value: unknown): string =>
    text(value).replaceAll(/"lineage":"([^"]*)"/g, (_match, lineage: string) => {
      const number = lineages.get(lineage) ?? lineages.size + 1;
      lineages.set(lineage, number);
      return `"lineage":${number}`;
    });
  const seen: string[] = [];
  await playHistory(
    backend,
    history,
    async ({ call, after }) => {
      seen.push(numbered([call, [...after.values()]]));
    },
    async (world) => {
      const { store } = world.opened;
      const evidence = await Promise.all([...world.views.keys()].map((id) => store.evidence(id)));
      const entries = evidence.map((one) =>
        one?.chain.entries.map((entry) => Buffer.from(entry).toString('base64')),
      );
      // Workers are not carried by a restart from a snapshot, and with them goes who could take a job.
      const { stranded: _stranded, ...counts } = await store.counts();
      seen.push(numbered([counts, await store.queues(), await store.lanes(100)]));
      seen.push(text(entries), text(await store.acts()));
    },
  );
  return seen;
}

describe('memory and sqlite', () => {
  for (const profile of PROFILES) {
    it(`tell a history of ${profile.name} in the same words`, async () => {
      const same = fc.asyncProperty(historyOf(profile, 80), async (history) => {
        const [memory, sqlite] = [
          await observed(memoryBackend, history),
          await observed(sqliteBackend, history),
        ];
        for (const [step, expected] of memory.entries()) {
          expect(sqlite[step], `step ${step}`).toBe(expected);
        }
        expect(sqlite).toHaveLength(memory.length);
      });
      await fc.assert(same, { numRuns: runsOf(sqliteBackend, 60) });
    }, 120_000);
  }
});
