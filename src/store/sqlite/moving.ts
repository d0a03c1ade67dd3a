/** Snapshot and restore of a SQLite store: a snapshot is one committed moment, and a restore proves before it writes. */
import { limits } from '../../core/index.ts';
import { encodeEntry, packLedger, sha256Hex } from '../../evidence/index.ts';
import { SnapshotRefusedError } from '../errors.ts';
import { byRow } from '../input.ts';
import { SNAPSHOT_FORMAT, type Snapshot } from '../snapshot.ts';
import type { ProvenJob, ProvenSnapshot } from '../snapshot-check.ts';
import type { ApplicationState, By } from '../store.ts';
import type { SqlConnection } from './driver.ts';
import type { Reads } from './reads.ts';
import { Columns } from './rows.ts';
import type { SqliteSession } from './session.ts';
import { effectRow, keyRow, queueRow } from './source.ts';

/** Takes a snapshot within one read transaction. */
export function snapshot(reads: Reads, clock: 'unix' | 'simulated', now: number): Snapshot {
  const counter = new Columns(reads.all('select * from counter')[0] ?? {});
  const ids = reads.all('select id from submission order by id').map((row) => new Columns(row).number('id'));
  const application = new Columns(reads.all('select state from application')[0] ?? {}).text('state');
  return {
    format: SNAPSHOT_FORMAT,
    clock,
    takenAt: Math.max(now, counter.number('last_tick')),
    sealedTo: counter.textOrNull('sealed_to'),
    keepKeysForMs: counter.number('keep_keys_for_ms'),
    counters: {
      nextId: counter.number('next_id'),
      nextToken: counter.number('next_token'),
      lastTick: counter.number('last_tick'),
    },
    queues: reads.all('select * from queue order by queue').map((row) => {
      const { queue, maxUnresolved, paused } = queueRow(row);
      return { queue, maxUnresolved, paused };
    }),
    definitions: reads.all('select * from definition order by rowid').map((row) => {
      const columns = new Columns(row);
      return {
        kind: columns.text('kind'),
        revision: columns.number('revision'),
        schemaDigest: columns.textOrNull('schema_digest'),
        normalisation: columns.text('normalisation'),
      };
    }),
    jobs: ids.map((id) => snapshotJob(reads, id)),
    keys: reads.all('select * from idempotency order by key').map(keyRow),
    effects: reads.all('select * from effect order by lineage, occurrence, key').map(effectRow),
    acts: reads.acts(),
    application: JSON.parse(application) as ApplicationState,
  };
}

function snapshotJob(reads: Reads, id: number): Snapshot['jobs'][number] {
  const loaded = reads.load(id);
  if (loaded === undefined) throw new Error(`job ${id} has a submission and no row`);
  const { job, chain, claimRequestId, reportDigest, redrivenTo, dismissed } = loaded.row;
  return {
    job,
    payload: reads.source.payload(id),
    root: chain.root,
    ledger: base64(reads.entries(id, loaded)),
    open: base64(chain.open.map(encodeEntry)),
    texts: Object.values(reads.texts(id)),
    claimRequestId,
    reportDigest,
    redrivenTo,
    dismissed,
    testimony: reads.source.testimony(id),
  };
}

function base64(entries: readonly Uint8Array[]): string {
  return Buffer.from(packLedger(entries)).toString('base64');
}

/** Whether a store holds anything a restore would mix with. Acts and definitions only grow, and may be there. */
const KEPT = `
  select exists (select 1 from submission) or exists (select 1 from idempotency)
    or exists (select 1 from effect) or exists (select 1 from queue)
    or exists (select 1 from application where state <> '{}') as kept`;

/** Fills an empty store from a proven snapshot, inside the transaction that is open. */
export function restore(
  session: SqliteSession,
  connection: SqlConnection,
  proven: ProvenSnapshot,
  as: 'restart' | 'copy',
  by: By,
): void {
  const taken = proven.snapshot;
  const noted = byRow(by);
  const kept = connection.prepare(KEPT).get();
  if (kept !== undefined && new Columns(kept).number('kept') > 0) {
    const problem = 'must be empty: without jobs, keys, marks, settings of queues and state of the program';
    throw new SnapshotRefusedError('store', problem, 'Restore into a new store; this one is as it was.');
  }
  const counters = countersAfter(connection, taken, as);
  for (const row of taken.queues) session.setQueue(row);
  // In the order of ids, so that the oldest job of a lane is there before its successors ask for a head.
  for (const one of [...proven.jobs].sort((a, b) => a.job.id - b.job.id)) restoreJob(session, one);
  for (const row of taken.keys) session.setKey(row);
  for (const mark of taken.effects) session.setEffect(mark);
  for (const row of taken.definitions) session.addDefinition(row);
  const act = connection.prepare('insert into act (act, tick, actor, reason, detail) values (?, ?, ?, ?, ?)');
  for (const one of taken.acts) act.run(one.act, one.tick, one.actor, one.reason, one.detail);
  connection.prepare('update counter set epoch = epoch + 1').run();
  connection.prepare('update application set state = ?').run(JSON.stringify(taken.application));
  if (as === 'copy') session.addAct('restore', noted, JSON.stringify({ takenAt: taken.takenAt }));
  session.flush();
  session.setCounters(counters, taken.counters.lastTick);
  // A sealed store stays sealed when it restarts; where its jobs went, they are at work.
  if (as === 'restart' && taken.sealedTo !== null) session.seal(taken.sealedTo);
}

function restoreJob(session: SqliteSession, proven: ProvenJob): void {
  const { job, chain, texts, claimRequestId, reportDigest, redrivenTo, dismissed, payload } = proven;
  const byDigest = Object.fromEntries(texts.map((text) => [sha256Hex(text), text]));
  const row = { job, chain, texts: byDigest, claimRequestId, reportDigest, redrivenTo, dismissed };
  session.insert(row, payload);
  session.flush();
  for (const testimony of proven.testimony) session.addTestimony(testimony);
}

/** A restart goes on counting; a copy jumps ahead, since the source may have gone on giving out ids and tokens. */
function countersAfter(
  connection: SqlConnection,
  taken: Snapshot,
  as: 'restart' | 'copy',
): { readonly nextId: number; readonly nextToken: number } {
  const own = new Columns(connection.prepare('select next_id, next_token from counter').get() ?? {});
  const { nextId, nextToken } = taken.counters;
  if (as === 'restart') {
    if (own.number('next_id') > nextId || own.number('next_token') > nextToken) {
      throw new SnapshotRefusedError(
        'snapshot.counters',
        'must not lie behind this store',
        'Restore it as a copy.',
      );
    }
    return { nextId, nextToken };
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
    nextId: ahead(own.number('next_id'), nextId, 'nextId'),
    nextToken: ahead(own.number('next_token'), nextToken, 'nextToken'),
  };
}
