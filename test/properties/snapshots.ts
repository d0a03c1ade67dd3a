/** Snapshots: what was copied is all of it, and what was spoilt is refused by name or was not spoilt at all. */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Snapshot } from '../../src/store/snapshot.ts';
import type { Store } from '../../src/store/store.ts';
import { checkStore } from '../../src/testing/conformance/invariants.ts';
import type { Action } from './actions.ts';
import { type Backend, runsOf } from './backend.ts';
import { forgedMarks, invented, loweredCounters, vandalise } from './forgeries.ts';
import { playHistory } from './histories.ts';
import { type Mutation, mutate, mutation } from './mutations.ts';
import { BY } from './perform-operator.ts';
import { historyOf, PROFILES } from './profiles.ts';
import type { World } from './world.ts';

const TIMEOUT = { timeout: 600_000 };
/** Every mix of actions, so that a snapshot may hold whatever a store may hold. */
const history = fc.oneof(...PROFILES.map((profile) => historyOf(profile, 60)));

/** Only where a history leads matters here, and its steps are audited elsewhere. */
const nobody = async (): Promise<void> => undefined;

/** Runs a history and hands the world and a snapshot that went through JSON text to `look`. */
async function withSnapshot(
  backend: Backend,
  actions: readonly Action[],
  look: (world: World, snapshot: Snapshot) => Promise<void>,
): Promise<void> {
  await playHistory(backend, actions, nobody, async (world) => {
    await look(world, JSON.parse(JSON.stringify(await world.store.snapshot())) as Snapshot);
  });
}

/** What two equal stores show alike: not when it was copied, how long the store itself keeps keys, or in which order. */
function contentOf(snapshot: object): unknown {
  const { takenAt: _takenAt, keepKeysForMs: _keepKeysForMs, ...rest } = snapshot as Snapshot;
  const sorted = (rows: readonly unknown[]): unknown =>
    [...rows].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  const { queues, definitions, jobs, keys, effects } = rest;
  const rows = jobs.map((row) => ({ ...row, texts: sorted([...new Set(row.texts)]) }));
  return {
    ...rest,
    queues: sorted(queues),
    definitions: sorted(definitions),
    keys: sorted(keys),
    effects: sorted(effects),
    jobs: rows.sort((a, b) => a.job.id - b.job.id),
  };
}

/** Restores into a new store and says what came of it: refused by a field and still empty, or stored. */
async function restored(
  world: World,
  value: unknown,
  look: (store: Store) => Promise<void>,
  as: 'restart' | 'copy' = 'restart',
): Promise<string | null> {
  const target = await world.opened.fresh();
  try {
    const empty = await target.store.snapshot();
    const refused = await refusal(() => target.store.restore(value, { as, by: BY }));
    if (refused === null) await look(target.store);
    const left = refused === null ? empty : await target.store.snapshot();
    expect(left).toEqual(empty);
    return refused;
  } finally {
    await target.close();
  }
}

/** The field that a refusal names; null when nothing was refused. */
async function refusal(restore: () => Promise<void>): Promise<string | null> {
  try {
    await restore();
    return null;
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    expect(error.code).toBe('snapshot_refused');
    if (!('field' in error) || typeof error.field !== 'string') throw error;
    expect(error.field).toMatch(/^snapshot/);
    return error.field;
  }
}

/** A spoilt snapshot is refused, or the store is what the snapshot says. */
async function expectRefusedOrEqual(world: World, spoilt: object): Promise<void> {
  await restored(world, spoilt, async (store) => {
    const stored: unknown = JSON.parse(JSON.stringify(await store.snapshot()));
    const given: unknown = JSON.parse(JSON.stringify(spoilt));
    expect(contentOf(stored as object)).toEqual(contentOf(given as object));
    await checkStore(store);
  });
}

export function snapshotSuite(backend: Backend): void {
  const assertRuns = async (
    usual: number,
    property: fc.IAsyncProperty<[readonly Action[], readonly Mutation[]]>,
  ): Promise<void> => fc.assert(property, { numRuns: runsOf(backend, usual) });
  const withMutations = (
    look: (world: World, snapshot: Snapshot, mutations: readonly Mutation[]) => Promise<void>,
    maxLength = 0,
  ): fc.IAsyncProperty<[readonly Action[], readonly Mutation[]]> =>
    fc.asyncProperty(history, fc.array(mutation, { maxLength, size: 'max' }), (actions, mutations) =>
      withSnapshot(backend, actions, (world, snapshot) => look(world, snapshot, mutations)),
    );

  describe(`${backend.name}: snapshots`, () => {
    it('lose nothing through JSON text, a restore and another snapshot', TIMEOUT, async () => {
      const look = async (world: World, snapshot: Snapshot): Promise<void> => {
        const refused = await restored(world, snapshot, async (store) => {
          expect(contentOf(await store.snapshot())).toEqual(contentOf(snapshot));
        });
        expect(refused).toBeNull();
      };
      await assertRuns(40, withMutations(look));
    });

    it(
      'are refused by a field, or restore to what they say, when any place in them is spoilt',
      TIMEOUT,
      async () => {
        const look = async (
          world: World,
          snapshot: Snapshot,
          mutations: readonly Mutation[],
        ): Promise<void> => {
          for (const one of mutations) {
            const spoilt = mutate(snapshot, one);
            if (spoilt !== null) await expectRefusedOrEqual(world, spoilt);
          }
        };
        await assertRuns(50, withMutations(look, 40));
      },
    );

    it('are refused with an effect mark that the ledger does not state', TIMEOUT, async () => {
      const look = async (world: World, snapshot: Snapshot): Promise<void> => {
        for (const forged of forgedMarks(snapshot)) {
          expect(await restored(world, forged, async () => undefined)).toMatch(/^snapshot\.effects/);
        }
      };
      await assertRuns(40, withMutations(look));
    });

    it('are refused with an effect mark in the name of a job that never was', TIMEOUT, async () => {
      const look = async (world: World, snapshot: Snapshot): Promise<void> => {
        const forged = invented(snapshot, snapshot.counters.nextId);
        if (forged === snapshot) return;
        expect(await restored(world, forged, async () => undefined)).toMatch(/^snapshot\.effects/);
      };
      await assertRuns(20, withMutations(look));
    });

    it('are refused with counters that would give an id or a token a second time', TIMEOUT, async () => {
      const look = async (world: World, snapshot: Snapshot): Promise<void> => {
        for (const lowered of loweredCounters(snapshot)) {
          expect(await restored(world, lowered, async () => undefined)).toMatch(/^snapshot\.counters/);
        }
      };
      await assertRuns(25, withMutations(look));
    });

    it(
      'are refused as a copy that leaves no room for the ids and tokens of its source',
      TIMEOUT,
      async () => {
        const look = async (world: World, snapshot: Snapshot): Promise<void> => {
          for (const name of ['nextId', 'nextToken'] as const) {
            const counters = { ...snapshot.counters, [name]: Number.MAX_SAFE_INTEGER - 1 };
            const full = { ...snapshot, counters, application: { left: 'behind' } };
            expect(await restored(world, full, async () => undefined, 'copy')).toBe(
              `snapshot.counters.${name}`,
            );
          }
        };
        await assertRuns(10, withMutations(look));
      },
    );

    it('share nothing with the store they came from or went to', TIMEOUT, async () => {
      const look = async (world: World, given: Snapshot): Promise<void> => {
        const before = await world.store.snapshot();
        vandalise(await world.store.snapshot());
        expect(await world.store.snapshot()).toEqual(before);
        const source = structuredClone(given);
        await restored(world, source, async (store) => {
          const first = await store.snapshot();
          vandalise(source);
          expect(await store.snapshot()).toEqual(first);
        });
      };
      await assertRuns(25, withMutations(look));
    });

    it('never reach a prototype', TIMEOUT, async () => {
      const names = Object.getOwnPropertyNames(Object.prototype);
      const text = (snapshot: Snapshot, key: string): string =>
        JSON.stringify({ ...snapshot, application: { held: 'here' } }).replace(
          '"held":"here"',
          `"${key}":{"polluted":true}`,
        );
      const look = async (world: World, snapshot: Snapshot): Promise<void> => {
        for (const key of ['__proto__', 'constructor', 'prototype', 'toString']) {
          await expectRefusedOrEqual(world, JSON.parse(text(snapshot, key)) as object);
        }
        expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(names);
        expect(isDeepStrictEqual({}, Object.create(Object.prototype))).toBe(true);
      };
      await assertRuns(10, withMutations(look));
    });
  });
}
