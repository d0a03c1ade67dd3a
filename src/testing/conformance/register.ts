/** Register: a schema that was changed without a new revision stops its worker at the door, before it misreads a job. */
import type { DefinitionRecord } from '../../core/index.ts';
import { limits } from '../../core/index.ts';
import { claimRequest, enqueueMany, enqueueOne, LEASE_MS, runningJob } from './build.ts';
import { only, present, rejects, same } from './check.ts';
import { type ConformanceCase, casesOf } from './harness.ts';

const A = 'a'.repeat(64);
const B = 'b'.repeat(64);

function definition(overrides: Partial<DefinitionRecord> = {}): DefinitionRecord {
  return { kind: 'transfer', revision: 1, schemaDigest: A, normalisation: 'json-schema/1', ...overrides };
}

export const registerCases: readonly ConformanceCase[] = casesOf('register', {
  'a definition is new once and the same from then on, also after a restart': async (opened) => {
    const registration = { worker: 'w', definitions: [definition()] };
    same(await opened.store.register(registration), ['new'], 'the first time');
    same(await opened.store.register(registration), ['same'], 'the second time');
    const { store } = await opened.reopen();
    same(await store.register({ ...registration, worker: 'other' }), ['same'], 'after a restart');
  },

  'another schema under the same revision is changed, and nothing of that registration is recorded': async ({
    store,
  }) => {
    await store.register({ worker: 'w', definitions: [definition()] });
    const fresh = definition({ kind: 'mail' });
    const definitions = [fresh, definition({ schemaDigest: B })];
    same(await store.register({ worker: 'v', definitions }), ['new', 'changed'], 'standings');
    same(
      (await store.workers()).map(({ worker }) => worker),
      ['w'],
      'workers',
    );
    same(await store.register({ worker: 'w', definitions: [fresh] }), ['new'], 'the other definition later');
    same(await store.register({ worker: 'w', definitions: [definition()] }), ['same'], 'the first schema');
  },

  'a new revision may have another schema, and an old revision keeps its own': async ({ store }) => {
    await store.register({ worker: 'w', definitions: [definition()] });
    const second = definition({ revision: 2, schemaDigest: B });
    same(await store.register({ worker: 'w', definitions: [second] }), ['new'], 'the second revision');
    const back = definition({ schemaDigest: B });
    same(
      await store.register({ worker: 'w', definitions: [back] }),
      ['changed'],
      'the first with its schema',
    );
  },

  'digests that were made in different ways are not compared': async ({ store }) => {
    await store.register({ worker: 'w', definitions: [definition()] });
    const other = definition({ schemaDigest: B, normalisation: 'json-schema/2' });
    same(await store.register({ worker: 'w', definitions: [other] }), ['incomparable'], 'another way');
    const none = definition({ schemaDigest: null });
    same(await store.register({ worker: 'w', definitions: [none] }), ['incomparable'], 'no digest');
    same(await store.register({ worker: 'w', definitions: [other] }), ['same'], 'the other way again');
  },

  'standings come in the order of the definitions': async ({ store }) => {
    await store.register({ worker: 'w', definitions: [definition()] });
    const definitions = [definition({ kind: 'x' }), definition(), definition({ schemaDigest: null })];
    same(await store.register({ worker: 'w', definitions }), ['new', 'same', 'incomparable'], 'standings');
  },

  'a worker is alive for ninety seconds after it was seen, and its leases are counted': async ({
    store,
    clock,
  }) => {
    await store.register({ worker: 'w', definitions: [definition()] });
    await runningJob(store, {}, { worker: 'w', leaseMs: 300_000 });
    await runningJob(store, {}, { worker: 'w', leaseMs: 300_000 });
    const seenAt = clock.now();
    const worker = only(await store.workers(), 'workers');
    same([worker.worker, worker.seenAt, worker.alive, worker.leases], ['w', seenAt, true, 2], 'worker');
    same(worker.definitions, [{ kind: 'transfer', revision: 1 }], 'definitions');
    clock.set(seenAt + limits.workerAliveMs - 1);
    same(only(await store.workers(), 'workers').alive, true, 'alive just within');
    clock.set(seenAt + limits.workerAliveMs + 1);
    same(only(await store.workers(), 'workers').alive, false, 'alive just after');
  },

  'a worker that asks for work is seen': async ({ store, clock }) => {
    await store.register({ worker: 'w', definitions: [definition()] });
    clock.advance(limits.workerAliveMs + 1);
    await store.claim(claimRequest({ worker: 'w' }));
    const worker = only(await store.workers(), 'workers');
    same([worker.seenAt, worker.alive], [clock.now(), true], 'seen and alive');
  },

  'jobs no live worker can take are stranded, until one comes that can': async ({ store, clock }) => {
    await store.register({ worker: 'w', definitions: [definition(), definition({ revision: 2 })] });
    await enqueueMany(store, [{}, { revision: 2 }, { revision: 3 }, { kind: 'mail' }]);
    same((await store.counts()).stranded, 2, 'stranded');
    await store.register({ worker: 'v', definitions: [definition({ revision: 3 })] });
    same((await store.counts()).stranded, 1, 'stranded once a newer worker came');
    clock.advance(limits.workerAliveMs + LEASE_MS);
    same((await store.counts()).stranded, 4, 'stranded once all workers are gone');
  },

  'what is not well formed throws, and nothing is recorded': async ({ store }) => {
    const bad: readonly Readonly<Record<string, unknown>>[] = [
      { kind: '' },
      { revision: 0 },
      { revision: 256 },
      { schemaDigest: 'A'.repeat(64) },
      { schemaDigest: 'a' },
      { normalisation: '' },
    ];
    for (const overrides of bad) {
      const definitions = [definition({ kind: 'fine' }), { ...definition(), ...overrides }];
      const call = (): Promise<unknown> => store.register({ worker: 'w', definitions });
      await rejects(call, 'invalid_input', `registering ${JSON.stringify(overrides)}`);
    }
    await rejects(() => store.register({ worker: '', definitions: [] }), 'invalid_input', 'no name');
    same(await store.workers(), [], 'workers');
    same(
      await store.register({ worker: 'w', definitions: [definition({ kind: 'fine' })] }),
      ['new'],
      'later',
    );
    present(only(await store.workers(), 'workers'), 'the worker');
    await enqueueOne(store);
  },
});
