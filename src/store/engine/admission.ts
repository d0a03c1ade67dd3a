/** Enqueueing: every member judged in order by `admit`, all in one commit, ids in the order asked. */
import {
  type Admission,
  type Asked,
  admit,
  descriptorText,
  type KeyHolder,
  limits,
} from '../../core/index.ts';
import { sha256Hex } from '../../evidence/index.ts';
import { InvalidInputError } from '../errors.ts';
import type { EnqueueVerdict } from '../store.ts';
import { detach } from './detach.ts';
import type { Engine } from './engine.ts';

/** Thrown to roll an atomic batch back; carries what each member would have been told. */
class Withheld extends Error {
  readonly verdicts: readonly EnqueueVerdict[];
  /** Ids of jobs the batch made, which are undone; a request asked again names one that was there before. */
  readonly undone: ReadonlySet<number>;

  constructor(verdicts: readonly EnqueueVerdict[], undone: ReadonlySet<number>) {
    super('an atomic batch was refused');
    this.verdicts = verdicts;
    this.undone = undone;
  }
}

/** Admits requests that were read. An atomic batch with a refused member throws, for `withheld` to read. */
export function enqueue(engine: Engine, asked: readonly Asked[], atomic: boolean): readonly EnqueueVerdict[] {
  const made = new Set<number>();
  const verdicts = admitAll(engine, asked, made);
  if (atomic && verdicts.some((verdict) => verdict.status === 'refused')) throw new Withheld(verdicts, made);
  return verdicts;
}

/**
 * What the members of a batch are told that was rolled back; anything else that was thrown goes on. No answer names a
 * job of the batch itself, since that was never stored.
 */
export function withheld(error: unknown): readonly EnqueueVerdict[] {
  if (!(error instanceof Withheld)) throw error;
  return error.verdicts.map((verdict) => {
    if (verdict.status === 'withheld' || verdict.id === null || !error.undone.has(verdict.id))
      return detach(verdict);
    return verdict.status === 'refused' ? { ...verdict, id: null } : { status: 'withheld' };
  });
}

/** Admits requests inside the transaction that is open. */
export function admitAll(
  engine: Engine,
  asked: readonly Asked[],
  made: Set<number> = new Set(),
): readonly EnqueueVerdict[] {
  return asked.map((one, index) => admitOne(engine, one, `jobs[${index}]`, made));
}

function admitOne(engine: Engine, asked: Asked, field: string, made: Set<number>): EnqueueVerdict {
  const repeated = repeatedRequest(engine, asked);
  if (repeated !== null) return repeated;
  const { queue } = asked;
  const maxUnresolved = engine.session.queue(queue)?.maxUnresolved ?? null;
  // An overdue job takes no capacity: at the bound, what time has ended is ended first.
  if (maxUnresolved !== null && engine.session.unresolved(queue) >= maxUnresolved) {
    engine.lapseOverdue(Number.MAX_SAFE_INTEGER);
  }
  const admission = admit(asked, {
    now: engine.now,
    lineage: engine.session.randomId(),
    sha256: sha256Hex,
    keyHolder: keyHolderOf(engine, asked.idempotencyKey),
    unresolved: engine.session.unresolved(queue),
    maxUnresolved,
  });
  const verdict = verdictOf(engine, asked, admission, field);
  if (verdict.status === 'created') made.add(verdict.id);
  return verdict;
}

function verdictOf(engine: Engine, asked: Asked, admission: Admission, field: string): EnqueueVerdict {
  switch (admission.outcome) {
    case 'created': {
      const { job } = engine.admit(admission.submission, asked.payload);
      return { status: 'created', id: job.id, job };
    }
    case 'duplicate': {
      const job = engine.session.row(admission.jobId)?.job ?? null;
      return { status: 'duplicate', id: admission.jobId, job, ignored: admission.ignored };
    }
    case 'refused':
      return { status: 'refused', refused: admission.refused, id: admission.jobId };
    case 'overflow':
      throw new InvalidInputError(`${field}.${admission.field}`, `leads to a tick above ${limits.tickMax}`);
  }
}

/** A request asked again answers as it did the first time, as long as its job is stored. */
function repeatedRequest(engine: Engine, asked: Asked): EnqueueVerdict | null {
  const id = asked.requestId === null ? undefined : engine.session.requestedJob(asked.requestId);
  const row = id === undefined ? undefined : engine.session.row(id);
  if (id === undefined || row === undefined) return null;
  const { descriptor, idempotencyKey } = row.job.submission;
  const same = sha256Hex(descriptorText(asked)) === descriptor && asked.idempotencyKey === idempotencyKey;
  if (!same) return { status: 'refused', refused: 'conflict', id };
  return { status: 'created', id, job: row.job };
}

/** The job or tombstone under a key, unless its time is over: then the key is free again. */
function keyHolderOf(engine: Engine, key: string | null): KeyHolder | null {
  const held = key === null ? undefined : engine.session.key(key);
  if (held === undefined) return null;
  const row = engine.session.row(held.jobId);
  if (row === undefined && held.keepUntil !== null && engine.now >= held.keepUntil) return null;
  return { jobId: held.jobId, descriptor: held.descriptor, submission: row?.job.submission ?? null };
}
