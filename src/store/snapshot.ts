/** The form in which a whole store is copied: plain JSON, read back strictly, so that half a snapshot is none. */
import {
  canonicalJson,
  type DefinitionRecord,
  deepCopyJson,
  isWellFormedText,
  type Job,
  limits,
  OUTCOMES,
  utf8Length,
} from '../core/index.ts';
import { type PlainReader, type Read, readRecord } from '../evidence/plain-reader.ts';
import { jobFields } from '../evidence/read-job.ts';
import type { EffectRow, KeyRow, Noted, QueueRow } from './session.ts';
import type { Act, ApplicationState, Testimony } from './store.ts';

export const SNAPSHOT_FORMAT = 'custody-snapshot-v1';

/** One job with its evidence. `ledger` and `open` are packed entries in base64; `root` covers the closed ones. */
export interface SnapshotJob {
  readonly job: Job;
  readonly payload: string;
  readonly root: string;
  readonly ledger: string;
  readonly open: string;
  /** Results, reasons and reports; their digests are in the ledger. */
  readonly texts: readonly string[];
  readonly claimRequestId: string | null;
  readonly reportDigest: string | null;
  readonly redrivenTo: number | null;
  readonly dismissed: Noted | null;
  readonly testimony: readonly Testimony[];
}

/** A whole store at one moment. */
export interface Snapshot {
  readonly format: typeof SNAPSHOT_FORMAT;
  readonly clock: 'unix' | 'simulated';
  readonly takenAt: number;
  readonly sealedTo: string | null;
  readonly keepKeysForMs: number;
  readonly counters: { readonly nextId: number; readonly nextToken: number; readonly lastTick: number };
  readonly queues: readonly QueueRow[];
  readonly definitions: readonly DefinitionRecord[];
  readonly jobs: readonly SnapshotJob[];
  readonly keys: readonly KeyRow[];
  readonly effects: readonly EffectRow[];
  readonly acts: readonly Act[];
  readonly application: ApplicationState;
}

/** How many rows of one kind a snapshot object may hold; larger stores move as a stream of lines. */
const ROWS_MAX = 10_000_000;
/** A packed ledger never passes what a bundle may hold. */
const LEDGER_CHARACTERS_MAX = Math.ceil(limits.bundleBytesMax / 3) * 4;

const ACTS: readonly Act['act'][] = [
  'pause',
  'resume',
  'configure',
  'restore',
  'seal',
  'prune',
  'redrive',
  'dismiss',
];

/**
 * Reads a snapshot of unknown origin into new objects, or names the first field that is not as it must be. What the
 * fields say of each other, and whether the evidence agrees, `checkSnapshot` tells.
 */
export function readSnapshot(value: unknown): Read<Snapshot> {
  return readRecord(value, 'snapshot', (reader) => ({
    format: reader.oneOf('format', [SNAPSHOT_FORMAT] as const),
    clock: reader.oneOf('clock', ['unix', 'simulated'] as const),
    takenAt: reader.tick('takenAt'),
    sealedTo: reader.nameOrNull('sealedTo', limits.reasonBytesMax),
    keepKeysForMs: reader.tick('keepKeysForMs'),
    counters: reader.record('counters', (counters) => ({
      nextId: counters.whole('nextId', 1, limits.idMax),
      nextToken: counters.whole('nextToken', 1, limits.tokenMax),
      lastTick: counters.tick('lastTick'),
    })),
    queues: reader.records('queues', ROWS_MAX, queueFields),
    definitions: reader.records('definitions', ROWS_MAX, definitionFields),
    jobs: reader.records('jobs', ROWS_MAX, rowFields),
    keys: reader.records('keys', ROWS_MAX, keyFields),
    effects: reader.records('effects', ROWS_MAX, effectFields),
    acts: reader.records('acts', ROWS_MAX, actFields),
    application: application(reader),
  }));
}

function rowFields(reader: PlainReader): SnapshotJob {
  return {
    job: reader.record('job', jobFields),
    payload: text(reader, 'payload', limits.payloadBytesMax),
    root: reader.digest('root'),
    ledger: text(reader, 'ledger', LEDGER_CHARACTERS_MAX),
    open: text(reader, 'open', LEDGER_CHARACTERS_MAX),
    texts: reader
      .items('texts', limits.bundleEntriesMax)
      .map((item, index) => textOf(reader, item, `texts[${index}]`, limits.resultBytesMax)),
    claimRequestId: reader.nameOrNull('claimRequestId', limits.requestIdBytesMax),
    reportDigest: reader.take('reportDigest') === null ? null : reader.digest('reportDigest'),
    redrivenTo: wholeOrNull(reader, 'redrivenTo', 1, limits.idMax),
    dismissed: reader.recordOrNull('dismissed', notedFields),
    testimony: reader.records('testimony', limits.testimonyPerJobMax, testimonyFields),
  };
}

function testimonyFields(reader: PlainReader): Testimony {
  return {
    id: reader.whole('id', 1, limits.idMax),
    tick: reader.tick('tick'),
    worker: reader.name('worker', limits.workerBytesMax),
    token: reader.whole('token', 1, limits.tokenMax),
    outcome: reader.oneOf('outcome', OUTCOMES),
    digest: reader.digest('digest'),
    report: text(reader, 'report', limits.resultBytesMax),
    chained: reader.flag('chained'),
  };
}

function notedFields(reader: PlainReader): Noted {
  return {
    actor: reader.name('actor', limits.actorBytesMax),
    reason: textOrNull(reader, 'reason', limits.reasonBytesMax),
    tick: reader.tick('tick'),
  };
}

function queueFields(reader: PlainReader): QueueRow {
  return {
    queue: reader.name('queue', limits.queueBytesMax),
    maxUnresolved: wholeOrNull(reader, 'maxUnresolved', 0, limits.maxUnresolvedMax),
    paused: reader.recordOrNull('paused', notedFields),
  };
}

function definitionFields(reader: PlainReader): DefinitionRecord {
  return {
    kind: reader.name('kind', limits.kindBytesMax),
    revision: reader.whole('revision', limits.revisionMin, limits.revisionMax),
    schemaDigest: reader.take('schemaDigest') === null ? null : reader.digest('schemaDigest'),
    normalisation: reader.name('normalisation', limits.kindBytesMax),
  };
}

function keyFields(reader: PlainReader): KeyRow {
  return {
    key: reader.name('key', limits.idempotencyKeyBytesMax),
    descriptor: reader.digest('descriptor'),
    jobId: reader.whole('jobId', 1, limits.idMax),
    keepUntil: reader.tickOrNull('keepUntil'),
  };
}

function effectFields(reader: PlainReader): EffectRow {
  return {
    lineage: reader.name('lineage', limits.lineageBytesMax),
    occurrence: reader.whole('occurrence', 0, limits.maxOccurrencesMax),
    key: reader.name('key', limits.effectKeyBytesMax),
    type: reader.oneOf('type', ['commit', 'step'] as const),
    done: reader.flag('done'),
    descriptor: reader.digest('descriptor'),
    result: textOrNull(reader, 'result', limits.resultBytesMax),
    jobId: reader.whole('jobId', 1, limits.idMax),
    token: reader.whole('token', 1, limits.tokenMax),
  };
}

function actFields(reader: PlainReader): Act {
  return {
    act: reader.oneOf('act', ACTS),
    tick: reader.tick('tick'),
    actor: reader.name('actor', limits.actorBytesMax),
    reason: textOrNull(reader, 'reason', limits.reasonBytesMax),
    detail: text(reader, 'detail', limits.payloadBytesMax),
  };
}

function application(reader: PlainReader): ApplicationState {
  const value = reader.take('application');
  const bounds = { maxDepth: limits.payloadDepthMax, maxBytes: Number.MAX_SAFE_INTEGER };
  const canonical = canonicalJson(value, bounds);
  if (!canonical.ok) return reader.refuse('application', `${canonical.problem} at ${canonical.path}`);
  if (!canonical.text.startsWith('{')) return reader.refuse('application', 'must be a plain object');
  return deepCopyJson(value) as ApplicationState;
}

function wholeOrNull(reader: PlainReader, field: string, min: number, max: number): number | null {
  return reader.take(field) === null ? null : reader.whole(field, min, max);
}

function text(reader: PlainReader, field: string, bytesMax: number): string {
  return textOf(reader, reader.take(field), field, bytesMax);
}

function textOrNull(reader: PlainReader, field: string, bytesMax: number): string | null {
  return reader.take(field) === null ? null : text(reader, field, bytesMax);
}

function textOf(reader: PlainReader, value: unknown, field: string, bytesMax: number): string {
  const rule = `must be text of at most ${bytesMax} UTF-8 bytes without lone surrogates`;
  if (typeof value !== 'string' || value.length > bytesMax) return reader.refuse(field, rule);
  return isWellFormedText(value) && utf8Length(value) <= bytesMax ? value : reader.refuse(field, rule);
}
