/** The runner finds what a case did not look for: a store that tells two stories about one job does not pass. */
import { describe, expect, test } from 'vitest';
import type { JobView, Store } from '../../src/store/store.ts';
import { assertCase, type ConformanceCase, type OpenedStore } from '../../src/testing/index.ts';
import { openMemory } from './open-memory.ts';

const JOB = { kind: 'mail', revision: 1, payload: { cents: 7 }, idempotent: true, orderingKey: 'alice' };

/** A case that looks at nothing, so that only the runner can find a fault. */
const BLIND: ConformanceCase = {
  verb: 'any',
  claim: 'nothing is looked at',
  async run({ store }) {
    await store.enqueue([JOB, { ...JOB, orderingKey: null }]);
    const definitions = [{ kind: 'mail', revision: 1, idempotent: true }];
    await store.claim({ worker: 'w', leaseMs: 1_000, max: 1, requestId: 'r', definitions, begin: true });
  },
};

/** Opens a memory store with some of its verbs replaced; a copy of it is opened as it is. */
async function openWith(replaced: (store: Store) => Partial<Store>): Promise<OpenedStore> {
  const opened = await openMemory();
  const { store } = opened;
  const faulty = new Proxy(store, {
    get(target, name) {
      const verbs: Readonly<Record<string | symbol, unknown>> = { ...replaced(target) };
      const verb: unknown = verbs[name] ?? Reflect.get(target, name, target);
      return typeof verb === 'function' ? (verb.bind(target) as unknown) : verb;
    },
  });
  return { ...opened, store: faulty };
}

async function altered(
  store: Store,
  query: Parameters<Store['find']>[0],
  alter: (view: JobView) => JobView,
): ReturnType<Store['find']> {
  const found = await store.find(query);
  return { ...found, jobs: found.jobs.map(alter) };
}

interface Fault {
  readonly found: RegExp;
  readonly replaced: (store: Store) => Partial<Store>;
}

const FAULTS: Readonly<Record<string, Fault>> = {
  'evidence with another payload': {
    found: /evidence holds the stored payload/,
    replaced: (store) => ({
      evidence: async (id) => {
        const evidence = await store.evidence(id);
        return evidence === null ? null : { ...evidence, payload: '{"cents":8}' };
      },
    }),
  },
  'evidence with an entry less': {
    found: /its evidence must verify/,
    replaced: (store) => ({
      evidence: async (id) => {
        const evidence = await store.evidence(id);
        return evidence === null ? null : { ...evidence, chain: { ...evidence.chain, open: [] } };
      },
    }),
  },
  'a get that differs from find': {
    found: /get and find agree/,
    replaced: (store) => ({
      get: async (id) => {
        const view = await store.get(id);
        return view === null ? null : { ...view, report: 'other' };
      },
    }),
  },
  'a token of two jobs': {
    found: /token/,
    replaced: (store) => ({
      find: (query) => altered(store, query, (view) => ({ ...view, job: { ...view.job, token: 1 } })),
    }),
  },
  'a page that ends too early': {
    found: /jobs of a copy|counts by state/,
    replaced: (store) => ({
      find: async (query) => ({ ...(await store.find({ ...query, limit: 1 })), nextAfterId: null }),
    }),
  },
  'a lease without a holder': {
    found: /holds a lease/,
    replaced: (store) => ({
      find: (query) => altered(store, query, (view) => ({ ...view, job: { ...view.job, lease: null } })),
    }),
  },
  'counts that miss a job': {
    found: /counts by state/,
    replaced: (store) => ({
      counts: async () => ({ ...(await store.counts()), states: { 3: 1 } }),
    }),
  },
  'a count of what needs you that is wrong': {
    found: /count of what needs you/,
    replaced: (store) => ({
      counts: async () => ({ ...(await store.counts()), needsYou: 1 }),
    }),
  },
  'a queue that is not listed': {
    found: /in the list of queues/,
    replaced: () => ({ queues: async () => [] }),
  },
  'a lane that is not listed': {
    found: /lanes with their heads/,
    replaced: () => ({ lanes: async () => [] }),
  },
  'a snapshot that leaves a job out': {
    found: /jobs of a copy|snapshot/,
    replaced: (store) => ({
      snapshot: async () => {
        const snapshot = await store.snapshot();
        return { ...snapshot, jobs: snapshot.jobs.slice(1) };
      },
    }),
  },
};

describe('the runner', () => {
  test('a store without a fault passes a case that looks at nothing', () => assertCase(BLIND, openMemory));

  for (const [fault, { found, replaced }] of Object.entries(FAULTS)) {
    test(`${fault} does not pass, although the case did not look`, async () => {
      await expect(assertCase(BLIND, () => openWith(replaced))).rejects.toThrow(found);
    });
  }

  test('every store a case opened is closed, also when the case fails', async () => {
    const opened: OpenedStore[] = [];
    const fails: ConformanceCase = {
      ...BLIND,
      async run(given) {
        opened.push(await given.fresh(), await given.reopen());
        throw new Error('the case failed');
      },
    };
    await expect(assertCase(fails, openMemory)).rejects.toThrow('the case failed');
    expect(opened).toHaveLength(2);
    for (const { store } of opened)
      await expect(store.counts()).rejects.toMatchObject({ code: 'store_closed' });
  });
});
