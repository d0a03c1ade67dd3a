/** Rows of a SQLite store as the verbs and the views know them, read through either connection. */

import type { Outcome } from '../../core/index.ts';
import type { EffectPlace, EffectRow, KeyRow, Noted, QueueRow } from '../session.ts';
import type { Testimony } from '../store.ts';
import type { Catalogue } from './catalogue.ts';
import type { SqlRow } from './driver.ts';
import { Columns, type Loaded, liveRow, settledRow } from './rows.ts';
import type { ReadStatements } from './statements.ts';

/** A job is unresolved while it has a live row; who finds none reads settled next and has the answer. */
export function loadRow(read: ReadStatements, catalogue: Catalogue, id: number): Loaded | undefined {
  const live = read.live.get(id);
  if (live !== undefined) return liveRow(live, catalogue.submission(read, id));
  const settled = read.settled.get(id);
  return settled === undefined ? undefined : settledRow(settled, catalogue.submission(read, id));
}

export function payloadOf(read: ReadStatements, id: number): string {
  const row = read.payload.get(id);
  if (row === undefined) throw new Error(`job ${id} has no payload`);
  return new Columns(row).text('payload');
}

export function keyRow(row: SqlRow): KeyRow {
  const columns = new Columns(row);
  return {
    key: columns.text('key'),
    descriptor: columns.text('descriptor'),
    jobId: columns.number('id'),
    keepUntil: columns.numberOrNull('keep_until'),
  };
}

export function effectRow(row: SqlRow): EffectRow {
  const columns = new Columns(row);
  return {
    lineage: columns.text('lineage'),
    occurrence: columns.number('occurrence'),
    key: columns.text('key'),
    type: columns.text('type') === 'commit' ? 'commit' : 'step',
    done: columns.flag('done'),
    descriptor: columns.text('descriptor'),
    result: columns.textOrNull('result'),
    jobId: columns.number('id'),
    token: columns.number('token'),
  };
}

export function effectAt(read: ReadStatements, place: EffectPlace): EffectRow | undefined {
  const row = read.effect.get(place.lineage, place.occurrence, place.key);
  return row === undefined ? undefined : effectRow(row);
}

export function testimonyOf(read: ReadStatements, id: number): readonly Testimony[] {
  return read.testimony.all(id).map((row) => {
    const columns = new Columns(row);
    return {
      id,
      tick: columns.number('tick'),
      worker: columns.text('worker'),
      token: columns.number('token'),
      outcome: columns.text('outcome') as Outcome,
      digest: columns.text('digest'),
      report: columns.text('report'),
      chained: columns.flag('chained'),
    };
  });
}

/** A queue's settings, and what counts against its bound while it has one. */
export interface CountedQueue extends QueueRow {
  readonly unresolved: number;
}

export function queueRow(row: SqlRow): CountedQueue {
  const columns = new Columns(row);
  const paused = columns.textOrNull('paused');
  return {
    queue: columns.text('queue'),
    maxUnresolved: columns.numberOrNull('max_unresolved'),
    unresolved: columns.number('unresolved'),
    paused: paused === null ? null : (JSON.parse(paused) as Noted),
  };
}
