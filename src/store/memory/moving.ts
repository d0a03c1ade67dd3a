/** Snapshot and restore in memory: both copy deeply, and a restore proves everything before it changes anything. */
import { limits } from '../../core/index.ts';
import { encodeEntry, packLedger, sha256Hex } from '../../evidence/index.ts';
import { SnapshotRefusedError } from '../errors.ts';
import { byRow, readClock } from '../input.ts';
import type { Row } from '../session.ts';
import { SNAPSHOT_FORMAT, type Snapshot } from '../snapshot.ts';
import { checkSnapshot, type ProvenJob, type ProvenSnapshot } from '../snapshot-check.ts';
import type { By } from '../store.ts';
import { effectRowKey } from './tables.ts';
import type { World } from './world.ts';

export function snapshot(world: World): Snapshot {
  const { rows, payloads, testimony, keys, effects, queues, definitions, acts, counters, sealedTo } =
    world.tables;
  return structuredClone({
    format: SNAPSHOT_FORMAT,
    clock: world.options.clockName,
    takenAt: Math.max(readClock(world.options.clock), counters.lastTick),
    sealedTo,
    keepKeysForMs: world.keepKeysForMs,
    counters,
    queues: [...queues.values()],
    definitions: [...definitions.values()],
    jobs: [...rows.values()].map(({ chain, texts, ...row }) => ({
      ...row,
      payload: payloads.get(row.job.id) ?? '',
      testimony: testimony.get(row.job.id) ?? [],
      root: chain.root,
      ledger: base64(chain.entries),
      open: base64(chain.open.map(encodeEntry)),
      texts: Object.values(texts),
    })),
    keys: [...keys.values()],
    effects: [...effects.values()],
    acts: [...acts.values()],
    application: world.application,
  });
}

function base64(entries: readonly Uint8Array[]): string {
  return Buffer.from(packLedger(entries)).toString('base64');
}

/** Fills an empty store from a proven snapshot, inside a transaction. */
export function restore(world: World, value: unknown, as: 'restart' | 'copy', by: By): void {
  const proven = checkSnapshot(value);
  const { snapshot: taken } = proven;
  const noted = byRow(by);
  const { rows, keys, effects, queues } = world.tables;
  const kept = [rows, keys, effects, queues].some((table) => table.size > 0);
  if (kept || Object.keys(world.application).length > 0) {
    const problem = 'must be empty: without jobs, keys, marks, settings of queues and state of the program';
    throw new SnapshotRefusedError('store', problem, 'Restore into a new store; this one is as it was.');
  }
  if (taken.clock === 'simulated' && world.options.clockName === 'unix') {
    throw new SnapshotRefusedError(
      'snapshot.clock',
      'must be unix: simulated ticks mean nothing to a real clock',
    );
  }
  world.atomically((engine) => {
    fill(world, proven);
    // A sealed store stays sealed when it restarts; where its jobs went, they are at work.
    world.tables.sealedTo = as === 'restart' ? taken.sealedTo : null;
    world.tables.counters = countersAfter(world, taken, as);
    world.index.rebuild(world.tables.rows.values());
    if (as === 'copy') engine.session.addAct('restore', noted, JSON.stringify({ takenAt: taken.takenAt }));
  });
  world.application = structuredClone(taken.application);
}

/** A restart goes on counting; a copy jumps ahead, since the source may have gone on giving out ids and tokens. */
function countersAfter(world: World, taken: Snapshot, as: 'restart' | 'copy'): Snapshot['counters'] {
  const own = world.tables.counters;
  const lastTick = Math.max(taken.counters.lastTick, 0);
  if (as === 'restart') {
    if (own.nextId > taken.counters.nextId || own.nextToken > taken.counters.nextToken) {
      throw new SnapshotRefusedError(
        'snapshot.counters',
        'must not lie behind this store',
        'Restore it as a copy.',
      );
    }
    return { ...taken.counters, lastTick };
  }
  const ahead = (a: number, b: number, field: string): number => {
    const next = Math.max(a, b) + limits.restoreGap;
    if (Number.isSafeInteger(next)) return next;
    throw new SnapshotRefusedError(
      `snapshot.counters.${field}`,
      `must leave room for ${limits.restoreGap} more`,
    );
  };
  return {
    nextId: ahead(own.nextId, taken.counters.nextId, 'nextId'),
    nextToken: ahead(own.nextToken, taken.counters.nextToken, 'nextToken'),
    lastTick,
  };
}

function fill(world: World, { snapshot: taken, jobs }: ProvenSnapshot): void {
  const { rows, payloads, testimony, keys, requests, effects, queues, definitions, acts } = world.tables;
  for (const proven of jobs) {
    const { id } = proven.job;
    rows.set(id, rowFrom(proven));
    payloads.set(id, proven.payload);
    if (proven.testimony.length > 0) testimony.set(id, proven.testimony);
    const { requestId } = proven.job.submission;
    if (requestId !== null) requests.set(requestId, id);
  }
  for (const row of taken.keys) keys.set(row.key, row);
  for (const mark of taken.effects) effects.set(effectRowKey(mark), mark);
  for (const row of taken.queues) queues.set(row.queue, row);
  for (const row of taken.definitions) definitions.set(JSON.stringify(row), row);
  // What was done to this store before stays on record.
  const before = acts.size;
  for (const [number, act] of taken.acts.entries()) acts.set(before + number, act);
}

function rowFrom(proven: ProvenJob): Row {
  const { job, chain, texts, claimRequestId, reportDigest, redrivenTo, dismissed } = proven;
  const byDigest = Object.fromEntries(texts.map((text) => [sha256Hex(text), text]));
  return { job, chain, texts: byDigest, claimRequestId, reportDigest, redrivenTo, dismissed };
}
